package lab.netty;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.channel.ServerChannelRecvByteBufAllocator;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.util.AsciiString;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import lab.observe.LoopMetrics;
import lab.observe.RequestMetrics;
import lab.shell.ModelContext;
import lab.shell.ServerModel;
import lab.shell.TrafficServer;
import lab.spec.BadValueException;
import lab.spec.Route;
import lab.spec.Routes;
import lab.spec.Settings;
import lab.wire.HttpDate;
import lab.work.Admission;

/** HTTP on Netty's event loops, the first of which also accepts. */
public final class NettyHttp implements TrafficServer {
  enum Event {
    /** Who has kept the server waiting for too long is to close. */
    SWEEP,
    /** Who has no request in flight is to close. */
    STOP
  }

  private static final int ACCEPTS_PER_TURN = 16;

  // For its connections: any thread.
  final RequestMetrics metrics;
  final Routes routes;
  final AsciiString modelHeader;
  final HttpDate date = new HttpDate();
  final Admission admission;
  final RequestHandler handler;
  final ChannelGroup connections;
  final long timeoutNanos;

  private final Loops loops;
  private final Channel listener;
  private volatile boolean stopping;

  private NettyHttp(
      ModelContext context, BiFunction<ModelContext, List<Loop>, RequestHandler> handlers)
      throws BadValueException, IOException {
    Settings settings = context.settings();
    metrics = context.requests();
    routes = context.routes();
    modelHeader = new AsciiString(context.model());
    timeoutNanos = settings.keepAliveTimeout().toNanos();
    admission = new Admission(settings.queueBound());
    int count = settings.loops(Runtime.getRuntime().availableProcessors());
    loops = new Loops(count, io(settings.epoll()));
    connections = new DefaultChannelGroup(loops.all().getFirst());
    context.knobs().hasLoops(count);
    context.knobs().has(Settings.NETTY_TRANSPORT);
    context.knobs().add(Settings.QUEUE_BOUND, admission::bound, admission::setBound);
    LoopMetrics.register(context.registry(), loops::all, connections::size);
    handler = handlers.apply(context, loops.all());
    try {
      listener = bind(settings);
    } catch (IOException | RuntimeException | Error e) {
      end();
      throw e;
    }
    loops.all().forEach(each -> each.every(1_000_000_000, () -> sweep(each)));
  }

  /** A model on Netty, with what works on requests, which may come from any of the loops. */
  public static ServerModel model(
      String name,
      Set<Route> routes,
      BiFunction<ModelContext, List<Loop>, RequestHandler> handlers) {
    return new ServerModel(name, routes, context -> new NettyHttp(context, handlers));
  }

  static IoHandlerFactory io(boolean epoll) throws BadValueException {
    if (!epoll) {
      return NioIoHandler.newFactory();
    }
    if (!Epoll.isAvailable()) {
      throw new BadValueException(
          "no native library for LAB_NETTY_TRANSPORT=epoll: " + Epoll.unavailabilityCause());
    }
    return EpollIoHandler.newFactory();
  }

  @Override
  public int port() {
    return ((InetSocketAddress) listener.localAddress()).getPort();
  }

  @Override
  public void stop(Duration grace) {
    try {
      var _ = listener.close().await(grace.toNanos(), TimeUnit.NANOSECONDS);
      stopping = true;
      connections.forEach(each -> each.pipeline().fireUserEventTriggered(Event.STOP));
      var _ = connections.newCloseFuture().await(grace.toNanos(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    end();
  }

  /** True if the server is stopping: every connection is closed with its answer. Any thread. */
  boolean isStopping() {
    return stopping;
  }

  /** On the loop. */
  private void sweep(Loop loop) {
    connections.stream()
        .filter(each -> each.eventLoop().equals(loop))
        .forEach(each -> each.pipeline().fireUserEventTriggered(Event.SWEEP));
  }

  private Channel bind(Settings settings) throws IOException {
    return new ServerBootstrap()
        .group(loops)
        .channel(loops.all().getFirst().listenerType())
        .option(ChannelOption.SO_BACKLOG, settings.backlog())
        .option(ChannelOption.RECVBUF_ALLOCATOR, accepting())
        .childOption(ChannelOption.TCP_NODELAY, true)
        // A client that has said all it will say still gets its answers.
        .childOption(ChannelOption.ALLOW_HALF_CLOSURE, true)
        .childHandler(
            new ChannelInitializer<SocketChannel>() {
              @Override
              protected void initChannel(SocketChannel channel) {
                Connection.serve(NettyHttp.this, channel);
              }
            })
        .bind(settings.httpPort())
        .syncUninterruptibly()
        .channel();
  }

  /** Up to so many connections a turn: by default it is one with epoll, and 16 with NIO. */
  private static RecvByteBufAllocator accepting() {
    return new ServerChannelRecvByteBufAllocator()
        .respectMaybeMoreData(false)
        .maxMessagesPerRead(ACCEPTS_PER_TURN);
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
