package lab.netty;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.util.Objects.requireNonNull;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.EventLoop;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.channel.socket.SocketChannel;
import io.netty.handler.codec.DecoderResult;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.DefaultHttpHeadersFactory;
import io.netty.handler.codec.http.EmptyHttpHeaders;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpContent;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.handler.codec.http.TooLongHttpHeaderException;
import io.netty.handler.codec.http.TooLongHttpLineException;
import io.netty.util.AsciiString;
import io.netty.util.ReferenceCountUtil;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import lab.observe.RequestMetrics;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.Outcome;
import lab.spec.RouteCall;
import lab.wire.HttpBytes;
import lab.wire.MalformedException;
import lab.wire.RequestTarget;
import org.jspecify.annotations.Nullable;

/**
 * One client connection. It works on one request at a time and begins the next when the answer to
 * the one before it is written, so pipelined requests are answered in order and a client that does
 * not read holds one answer in memory, no more.
 *
 * <pre>
 *           request                      answer written, keep-alive
 *   idle -------------> in flight --------------------------------------> idle
 *    |                   |    ^                                            |
 *    | timeout, EOF,     |    '-- next of the pipelined ones waiting <-----'
 *    | stopping          | answer written, not keep-alive / EOF / stopping / too many idle
 *    v                   v
 *  closed <--------------'      malformed or oversized: 400 or 431 in its turn, then closed
 * </pre>
 *
 * A client that has sent more than its last request is listened to for a while before it is closed.
 * The loop's thread only, except {@link #answer}.
 */
final class Connection extends ChannelInboundHandlerAdapter {
  private static final Logger LOG = System.getLogger(Connection.class.getName());

  /** For how long, and how much, input after the last answer is still read and dropped. */
  private static final int LINGER_MS = 1000;

  private static final int LINGER_BYTES = 1 << 20;

  private static final AsciiString MODEL_HEADER = AsciiString.cached(ModelContext.MODEL_HEADER);
  private static final byte[] NO_BODY = {};
  private static final AsciiString JSON = AsciiString.cached(Answer.JSON);

  /** What is set here is the lab's own and needs no check. */
  private static final DefaultHttpHeadersFactory HEADERS =
      DefaultHttpHeadersFactory.headersFactory().withValidation(false);

  private final NettyHttp server;
  private final Loop loop;
  private final RequestDecoder decoder;
  private @Nullable ChannelHandlerContext context;

  /** The request whose body, which means nothing to the lab, is still coming. */
  private @Nullable HttpRequest incoming;

  private @Nullable Exchange inFlight;

  /** Requests read while one was in flight; null until a client pipelines. */
  private @Nullable ArrayDeque<Exchange> pipelined;

  /** Said after all that was asked before it; then the connection is closed. */
  private @Nullable Answer protocolError;

  /** Whether the client of {@link #incoming} waits to be told to go on. */
  private boolean owesContinue;

  /** Whether a part of a request is there, and none before it is in flight. */
  private boolean isReceiving;

  /** Whether an answer waits for a client that does not read. */
  private boolean isWriting;

  /** Whether the client has ended its half, or nothing more of it is wanted. */
  private boolean inputEnded;

  private boolean countedIdle;
  private long idleSinceNanos = System.nanoTime();

  Connection(NettyHttp server, Loop loop, RequestDecoder decoder) {
    this.server = server;
    this.loop = loop;
    this.decoder = decoder;
  }

  EventLoop loop() {
    return loop.executor();
  }

  RequestMetrics metrics() {
    return server.metrics();
  }

  @Override
  public void channelActive(ChannelHandlerContext ctx) {
    context = ctx;
    loop.opened(this);
    if (loop.isDraining()) {
      var _ = ctx.close();
    }
  }

  @Override
  public void channelInactive(ChannelHandlerContext ctx) {
    setCountedIdle(false);
    loop.closed(this);
  }

  @Override
  public void channelRead(ChannelHandlerContext ctx, Object message) {
    try {
      if (protocolError == null && !inputEnded) {
        receive(ctx, message);
      }
    } finally {
      var _ = ReferenceCountUtil.release(message);
    }
  }

  @Override
  public void channelReadComplete(ChannelHandlerContext ctx) {
    boolean receives = inFlight == null && decoder.hasInput();
    if (receives && !isReceiving) {
      // From its first byte on a request has its time anew: once, however slowly it comes.
      idleSinceNanos = loop.clock().selectedNanos();
    }
    isReceiving = receives;
  }

  @Override
  public void userEventTriggered(ChannelHandlerContext ctx, Object event) {
    if (event == ChannelInputShutdownEvent.INSTANCE) {
      inputEnded = true;
      if (inFlight == null) {
        var _ = ctx.close();
      }
    }
  }

  @Override
  public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
    if (cause instanceof IOException) {
      LOG.log(Level.DEBUG, "the client broke the connection", cause);
    } else {
      LOG.log(Level.ERROR, "a bug: a connection failed", cause);
    }
    var _ = ctx.close();
  }

  /** Closes the connection if it has waited for its client for this long, to ask or to read. */
  void closeIfQuiet(long nowNanos, long forNanos) {
    if ((inFlight == null || isWriting) && nowNanos - idleSinceNanos >= forNanos) {
      var _ = context().close();
    }
  }

  /** Closes the connection if it has no request in flight. */
  void closeIfIdle() {
    if (inFlight == null) {
      var _ = context().close();
    }
  }

  /** Any thread. */
  void answer(Exchange exchange, Answer answer) {
    if (loop().inEventLoop()) {
      write(exchange, answer);
      return;
    }
    exchange.handedBack();
    try {
      loop().execute(() -> write(exchange, answer));
    } catch (RejectedExecutionException e) {
      // The server's grace is over and its loops have ended.
      server.ended(exchange, Outcome.ABORTED);
    }
  }

  /** Gives a request up; the connection goes with it. Any thread. */
  void abort(Exchange exchange) {
    server.ended(exchange, Outcome.ABORTED);
    var _ = context().close();
  }

  private void receive(ChannelHandlerContext ctx, Object message) {
    if (message instanceof HttpRequest request) {
      incoming = request;
      if (request.decoderResult().isFailure()) {
        refuse(ctx, request.decoderResult());
        return;
      }
      if (!hasItsHost(request)) {
        refuse(ctx, DecoderResult.failure(new IllegalArgumentException("not one Host")));
        return;
      }
      owesContinue = HttpUtil.is100ContinueExpected(request);
      if (inFlight == null) {
        sayContinue(ctx);
      }
    }
    if (message instanceof HttpContent content) {
      if (content.decoderResult().isFailure()) {
        refuse(ctx, content.decoderResult());
      } else if (content instanceof LastHttpContent && incoming != null) {
        HttpRequest request = incoming;
        incoming = null;
        // The body came unasked for.
        owesContinue = false;
        accept(ctx, request);
      }
    }
  }

  /** Tells a client that waits to be told to send its body, after all answers before it. */
  private void sayContinue(ChannelHandlerContext ctx) {
    if (owesContinue) {
      owesContinue = false;
      var _ = ctx.writeAndFlush(response(HttpResponseStatus.CONTINUE, NO_BODY));
    }
  }

  /** Whether there is one Host, or in HTTP/1.0 at most one, and it is none that is no host. */
  private static boolean hasItsHost(HttpRequest request) {
    Iterator<? extends CharSequence> hosts =
        request.headers().valueCharSequenceIterator(HttpHeaderNames.HOST);
    if (!hosts.hasNext()) {
      return request.protocolVersion().equals(HttpVersion.HTTP_1_0);
    }
    String host = hosts.next().toString();
    return !hosts.hasNext() && HttpBytes.isHost(host.getBytes(ISO_8859_1));
  }

  private void accept(ChannelHandlerContext ctx, HttpRequest request) {
    RequestTarget target;
    try {
      target = RequestTarget.parse(request.uri());
    } catch (MalformedException e) {
      refuse(ctx, DecoderResult.failure(e));
      return;
    }
    RouteCall call =
        server.routes().resolve(request.method().name(), target.path(), target.query());
    Exchange exchange =
        new Exchange(
            this,
            call,
            HttpUtil.isKeepAlive(request),
            request.protocolVersion().equals(HttpVersion.HTTP_1_0),
            request.method().equals(HttpMethod.HEAD),
            loop.clock().readyNanos());
    if (inFlight == null) {
      setCountedIdle(false);
      begin(exchange);
      return;
    }
    if (pipelined == null) {
      pipelined = new ArrayDeque<>(4);
    }
    pipelined.add(exchange);
    // What one read brought is kept; more stays with the kernel until these are answered.
    var _ = ctx.channel().config().setAutoRead(false);
  }

  private void begin(Exchange exchange) {
    inFlight = exchange;
    server.handle(exchange);
  }

  /** Reads no further; what was asked before is answered first. */
  private void refuse(ChannelHandlerContext ctx, DecoderResult result) {
    boolean tooLong =
        result.cause() instanceof TooLongHttpHeaderException
            || result.cause() instanceof TooLongHttpLineException;
    protocolError = tooLong ? NettyHttp.TOO_LARGE : NettyHttp.MALFORMED;
    metrics().malformed();
    if (inFlight == null) {
      sayProtocolError(ctx, protocolError);
    } else {
      var _ = ctx.channel().config().setAutoRead(false);
    }
  }

  private void sayProtocolError(ChannelHandlerContext ctx, Answer answer) {
    FullHttpResponse response = response(answer, false);
    response.headers().set(HttpHeaderNames.CONNECTION, HttpHeaderValues.CLOSE);
    var _ = ctx.writeAndFlush(response).addListener(_ -> linger(ctx));
  }

  /** To close with input unread would reset the connection, and the client lose the answer. */
  private void linger(ChannelHandlerContext ctx) {
    inputEnded = true;
    // As long as it takes to linger it is no idle client.
    idleSinceNanos = System.nanoTime();
    var _ = ctx.pipeline().addFirst(new Lingering());
    var _ = ((SocketChannel) ctx.channel()).shutdownOutput();
    var _ = ctx.channel().config().setAutoRead(true);
    var _ = ctx.executor().schedule(() -> close(ctx), LINGER_MS, TimeUnit.MILLISECONDS);
  }

  private static void close(ChannelHandlerContext ctx) {
    var _ = ctx.close();
  }

  private void write(Exchange exchange, Answer answer) {
    exchange.written();
    boolean last = protocolError == null && (pipelined == null || pipelined.isEmpty());
    // With more requests at hand it would not be idle.
    boolean idles = last && !decoder.hasInput();
    boolean close =
        !exchange.keepAlive()
            || loop.isDraining()
            || (last && inputEnded)
            || (idles && !server.mayIdleOneMore());
    FullHttpResponse response = response(answer, exchange.isHead());
    if (answer.status() == 405) {
      response.headers().set(HttpHeaderNames.ALLOW, "GET");
    }
    if (close) {
      response.headers().set(HttpHeaderNames.CONNECTION, HttpHeaderValues.CLOSE);
    } else if (exchange.isHttp10()) {
      response.headers().set(HttpHeaderNames.CONNECTION, HttpHeaderValues.KEEP_ALIVE);
    }
    ChannelFuture writing = context().writeAndFlush(response);
    if (!writing.isDone()) {
      // Now it is the client's turn: to read.
      isWriting = true;
      idleSinceNanos = System.nanoTime();
    }
    var _ =
        writing.addListener(
            written -> {
              isWriting = false;
              Outcome outcome = written.isSuccess() ? answer.outcome() : Outcome.ABORTED;
              server.ended(exchange, outcome);
              next(close || !written.isSuccess());
            });
  }

  private void next(boolean close) {
    ChannelHandlerContext ctx = context();
    Exchange waiting = pipelined == null ? null : pipelined.poll();
    if (close || !ctx.channel().isActive()) {
      boolean hasMore = pipelined != null || protocolError != null || decoder.hasInput();
      inFlight = null;
      pipelined = null;
      if (hasMore && !inputEnded && ctx.channel().isActive()) {
        linger(ctx);
      } else {
        var _ = ctx.close();
      }
    } else if (waiting != null) {
      // As a task: a read may bring a thousand requests, too many for one stack.
      inFlight = waiting;
      loop().execute(() -> begin(waiting));
    } else {
      inFlight = null;
      idle(ctx);
    }
  }

  private void idle(ChannelHandlerContext ctx) {
    if (protocolError != null) {
      sayProtocolError(ctx, protocolError);
    } else if (inputEnded) {
      var _ = ctx.close();
    } else {
      idleSinceNanos = System.nanoTime();
      setCountedIdle(true);
      sayContinue(ctx);
      if (pipelined != null) {
        pipelined = null;
        var _ = ctx.channel().config().setAutoRead(true);
      }
    }
  }

  private void setCountedIdle(boolean counted) {
    if (countedIdle != counted) {
      countedIdle = counted;
      loop.addIdle(counted ? 1 : -1);
    }
  }

  private FullHttpResponse response(Answer answer, boolean headOnly) {
    FullHttpResponse response =
        response(HttpResponseStatus.valueOf(answer.status()), headOnly ? NO_BODY : answer.body());
    HttpHeaders headers = response.headers();
    headers.set(
        HttpHeaderNames.CONTENT_TYPE,
        answer.contentType().equals(Answer.JSON) ? JSON : answer.contentType());
    headers.set(HttpHeaderNames.CONTENT_LENGTH, Integer.toString(answer.body().length));
    headers.set(MODEL_HEADER, server.modelHeader());
    headers.set(HttpHeaderNames.DATE, server.date());
    return response;
  }

  private static FullHttpResponse response(HttpResponseStatus status, byte[] body) {
    return new DefaultFullHttpResponse(
        HttpVersion.HTTP_1_1,
        status,
        Unpooled.wrappedBuffer(body),
        HEADERS.newHeaders(),
        EmptyHttpHeaders.INSTANCE);
  }

  private ChannelHandlerContext context() {
    return requireNonNull(context);
  }

  /** Drops what is read after the last answer, and ends that when it is too much. */
  private static final class Lingering extends ChannelInboundHandlerAdapter {
    private int left = LINGER_BYTES;

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
      left -= ((ByteBuf) message).readableBytes();
      var _ = ReferenceCountUtil.release(message);
      if (left < 0) {
        close(ctx);
      }
    }
  }
}
