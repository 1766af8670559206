package lab.netty;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.HttpDecoderConfig;
import io.netty.handler.codec.http.HttpResponseEncoder;
import io.netty.util.AsciiString;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import lab.observe.LoopMetrics;
import lab.observe.RequestMetrics;
import lab.shell.ModelContext;
import lab.shell.ServerModel;
import lab.shell.TrafficServer;
import lab.spec.Answer;
import lab.spec.Outcome;
import lab.spec.Route;
import lab.spec.Routes;
import lab.spec.Settings;
import lab.wire.HttpDate;
import lab.work.Admission;

/**
 * HTTP on Netty's event loops, the first of which also accepts. The transport is NIO, as in every
 * other model: Netty's epoll would be a difference that is not the concurrency model's.
 */
public final class NettyHttp implements TrafficServer {
  /** Makes what works on a model's requests. */
  public interface HandlerFactory {
    /**
     * Called once, before the first request.
     *
     * @param loops all that requests may come from
     */
    RequestHandler create(ModelContext context, List<Loop> loops);
  }

  static final Answer MALFORMED = Answer.error(400, "malformed request");
  static final Answer TOO_LARGE = Answer.error(431, "request line or headers too large");

  private static final Logger LOG = System.getLogger(NettyHttp.class.getName());
  private static final int MAX_REQUEST_LINE_BYTES = 32 << 10;
  private static final int MAX_HEAD_BYTES = 32 << 10;

  private final Loops loops;
  private final RequestMetrics metrics;
  private final Routes routes;
  private final AsciiString modelHeader;
  private final HttpDate date = new HttpDate();
  private final int maxIdle;
  private final Admission admission;
  private final RequestHandler handler;
  private final Channel listener;

  private NettyHttp(ModelContext context, HandlerFactory handlers, int loopCount)
      throws IOException {
    Settings settings = context.settings();
    metrics = context.requests();
    routes = context.routes();
    modelHeader = new AsciiString(context.model());
    maxIdle = settings.keepAliveMaxIdle();
    admission = new Admission(settings.queueBound());
    loops = new Loops(loopCount);
    context.knobs().hasLoops(loopCount);
    context.knobs().add(Settings.QUEUE_BOUND, admission::bound, admission::setBound);
    LoopMetrics.register(context.registry(), loops::all, loops::openConnections);
    handler = handlers.create(context, loops.all());
    boolean bound = false;
    try {
      listener = bind(settings);
      bound = true;
    } finally {
      if (!bound) {
        end();
      }
    }
    long timeoutNanos = settings.keepAliveTimeout().toNanos();
    long tickNanos = Math.min(timeoutNanos / 4, TimeUnit.SECONDS.toNanos(10));
    loops.all().forEach(loop -> loop.sweep(timeoutNanos, tickNanos));
  }

  /**
   * A model on Netty.
   *
   * @param handlers makes what works on its requests
   */
  public static ServerModel model(String name, Set<Route> routes, HandlerFactory handlers) {
    return new ServerModel(
        name,
        routes,
        context -> {
          int cpus = Runtime.getRuntime().availableProcessors();
          return new NettyHttp(context, handlers, context.settings().loops(cpus));
        });
  }

  @Override
  public int port() {
    return ((InetSocketAddress) listener.localAddress()).getPort();
  }

  @Override
  public void stop(Duration grace) {
    try {
      var _ = listener.close().await(grace.toNanos(), TimeUnit.NANOSECONDS);
      loops.drain(grace);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    end();
  }

  Routes routes() {
    return routes;
  }

  /** Gives a request to the model, or refuses it. The connection's loop. */
  void handle(Exchange exchange) {
    if (!admission.tryEnter()) {
      exchange.begin();
      exchange.answer(Answer.QUEUE_FULL);
      return;
    }
    exchange.admitted();
    try {
      handler.handle(exchange);
    } catch (RuntimeException | Error e) {
      LOG.log(Level.ERROR, "a bug: " + exchange.call().route().path() + " failed", e);
      exchange.fail();
    }
  }

  /** A request is over, given to the model or not. Any thread. */
  void ended(Exchange exchange, Outcome outcome) {
    if (exchange.isAdmitted()) {
      admission.leave();
    }
    exchange.ended(metrics, outcome);
  }

  RequestMetrics metrics() {
    return metrics;
  }

  AsciiString modelHeader() {
    return modelHeader;
  }

  /** What a header {@code Date} says now. */
  String date() {
    return date.now();
  }

  /** Whether a connection may be kept open after its answer. */
  boolean mayIdleOneMore() {
    return loops.idleConnections() < maxIdle;
  }

  private Channel bind(Settings settings) throws IOException {
    HttpDecoderConfig limits =
        new HttpDecoderConfig()
            .setMaxInitialLineLength(MAX_REQUEST_LINE_BYTES)
            .setMaxHeaderSize(MAX_HEAD_BYTES);
    var bound =
        new ServerBootstrap()
            .group(loops.group())
            .channel(NioServerSocketChannel.class)
            .option(ChannelOption.SO_BACKLOG, settings.backlog())
            .childOption(ChannelOption.TCP_NODELAY, settings.tcpNodelay())
            // A client that has said all it will say still gets its answers.
            .childOption(ChannelOption.ALLOW_HALF_CLOSURE, true)
            .childHandler(
                new ChannelInitializer<SocketChannel>() {
                  @Override
                  protected void initChannel(SocketChannel channel) {
                    RequestDecoder decoder = new RequestDecoder(limits);
                    Loop loop = loops.of(channel.eventLoop());
                    channel
                        .pipeline()
                        .addLast(decoder)
                        .addLast(new HttpResponseEncoder())
                        .addLast(new Connection(NettyHttp.this, loop, decoder));
                  }
                })
            .bind(settings.httpPort())
            .awaitUninterruptibly();
    if (bound.cause() instanceof IOException e) {
      throw e;
    }
    return bound.syncUninterruptibly().channel();
  }

  private void end() {
    handler.close();
    try {
      loops.end();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
