package lab.springwebflux;

import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.channel.EventLoop;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.URI;
import lab.observe.RequestMetrics;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.Outcome;
import lab.spec.RouteCall;
import org.jspecify.annotations.Nullable;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.http.server.reactive.ServerHttpResponseDecorator;
import org.springframework.stereotype.Component;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebFilter;
import org.springframework.web.server.WebFilterChain;
import reactor.core.publisher.Mono;
import reactor.core.publisher.SignalType;
import reactor.netty.channel.ChannelOperations;

/** What the contract asks of every route: resolves, refuses, counts. No call blocks. */
@Component
@Order(Ordered.HIGHEST_PRECEDENCE)
final class ContractFilter implements WebFilter {
  /** The request attribute with the {@link RouteCall}. */
  static final String CALL = "lab.call";

  private static final Logger LOG = System.getLogger(ContractFilter.class.getName());

  private final ModelContext context;

  ContractFilter(ModelContext context) {
    this.context = context;
  }

  @Override
  public Mono<Void> filter(ServerWebExchange exchange, WebFilterChain chain) {
    long begunNanos = System.nanoTime();
    ServerHttpRequest request = exchange.getRequest();
    URI target = request.getURI();
    RouteCall call =
        context.resolve(request.getMethod().name(), target.getPath(), target.getRawQuery());
    RequestMetrics requests = context.requests();
    requests.begun(call.route());
    ServerHttpResponse response = exchange.getResponse();
    response.getHeaders().set(ModelContext.MODEL_HEADER, context.model());
    // Spring wraps the response to HEAD.
    ChannelOperations<?, ?> client = ServerHttpResponseDecorator.getNativeResponse(response);
    Write write = client.channel().pipeline().get(Writes.class).begin();
    EventLoop loop = client.channel().eventLoop();
    return answer(exchange, chain, call)
        .doFinally(
            end -> {
              Runnable ended =
                  () ->
                      requests.ended(
                          call.route(),
                          outcome(end, write, response),
                          0,
                          System.nanoTime() - begunNanos);
              // From another loop the answer is written by a task, which this then follows.
              if (loop.inEventLoop()) {
                ended.run();
              } else {
                loop.execute(ended);
              }
            });
  }

  private static final class Write {
    private volatile @Nullable ChannelFuture last;

    private boolean succeeded() {
      ChannelFuture written = last;
      return written != null && written.isSuccess();
    }
  }

  /**
   * What a connection writes. Reactor Netty may report success where the client has gone and the
   * write failed, and then writes to a channel that discards everything. The next request may begin
   * before the end of the last is heard of, so each has a {@link Write}. Whether it succeeded is
   * asked: Netty may tell its listeners later than those of the whole answer.
   */
  static final class Writes extends ChannelOutboundHandlerAdapter {
    private volatile Write current = new Write();

    private Write begin() {
      Write write = new Write();
      current = write;
      return write;
    }

    @Override
    public void write(ChannelHandlerContext context, Object message, ChannelPromise promise) {
      ChannelPromise written = promise.unvoid();
      current.last = written;
      var _ = context.write(message, written);
    }
  }

  private static Mono<Void> answer(
      ServerWebExchange exchange, WebFilterChain chain, RouteCall call) {
    ServerHttpResponse response = exchange.getResponse();
    Answer refusal = call.refusal();
    if (refusal != null) {
      return send(response, refusal);
    }
    exchange.getAttributes().put(CALL, call);
    return chain
        .filter(exchange)
        .onErrorResume(
            e -> !response.isCommitted(),
            e -> {
              LOG.log(Level.ERROR, "a bug: " + call.route().path() + " failed", e);
              return send(response, Answer.INTERNAL_ERROR);
            });
  }

  /** When the client is gone, the work is cancelled, or the writing of its answer fails. */
  private static Outcome outcome(SignalType end, Write write, ServerHttpResponse response) {
    HttpStatusCode status = response.getStatusCode();
    if (end != SignalType.ON_COMPLETE || !write.succeeded()) {
      return Outcome.ABORTED;
    }
    return status == null ? Outcome.OK : Outcome.ofStatus(status.value());
  }

  private static Mono<Void> send(ServerHttpResponse response, Answer answer) {
    response.setRawStatusCode(answer.status());
    HttpHeaders headers = response.getHeaders();
    headers.set(HttpHeaders.CONTENT_TYPE, answer.contentType());
    headers.setContentLength(answer.body().length);
    if (answer.status() == 405) {
      headers.set(HttpHeaders.ALLOW, "GET");
    }
    return response.writeWith(Mono.just(response.bufferFactory().wrap(answer.body())));
  }
}
