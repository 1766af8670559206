package lab.eventloop;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import lab.contract.LoopMetrics;
import lab.contract.ModelContext;
import lab.contract.Settings;
import lab.contract.TrafficServer;
import lab.contract.downstream.DownstreamAddress;
import lab.contract.downstream.DownstreamLimits;
import lab.contract.downstream.DownstreamRequest;
import lab.contract.serving.Admission;

/** The loops, their threads, and what they share. */
final class LoopServer implements TrafficServer {
  private static final Logger LOG = System.getLogger(LoopServer.class.getName());
  private static final int EXIT_BROKEN = 70;

  /** Beyond the grace, for a loop that is in the middle of something long. */
  private static final Duration LAST_TURN = Duration.ofSeconds(1);

  private final int port;
  private final List<Loop> loops;
  private final List<Thread> threads;
  private final ExecutorService helpers;

  private LoopServer(int port, List<Loop> loops, List<Thread> threads, ExecutorService helpers) {
    this.port = port;
    this.loops = loops;
    this.threads = threads;
    this.helpers = helpers;
  }

  static LoopServer start(ModelContext context) throws IOException {
    Settings settings = context.settings();
    int count = settings.loops(1);
    DownstreamLimits limits = DownstreamLimits.publish(context);
    DownstreamRequest request = DownstreamRequest.get(settings.downstreamUrl());
    Admission admission = new Admission(settings.queueBound());
    ServerSocketChannel listener = ServerSocketChannel.open();
    // They do what may block. Files are in the page cache, so reading them takes only CPU.
    ExecutorService helpers =
        Executors.newFixedThreadPool(
            Runtime.getRuntime().availableProcessors(),
            Thread.ofPlatform().daemon().name("helper-", 1).factory());
    List<Loop> loops = new ArrayList<>();
    try {
      listener.configureBlocking(false);
      listener.bind(new InetSocketAddress(settings.httpPort()), settings.backlog());
      DownstreamAddress address = new DownstreamAddress(request.host(), request.port(), helpers);
      for (int i = 1; i <= count; i++) {
        loops.add(
            new Loop(
                "loop-" + i,
                context,
                // Connections are dealt out in turn, so equal shares hold for the whole.
                Math.max(1, settings.keepAliveMaxIdle() / count),
                admission,
                limits,
                address,
                request.bytes(),
                helpers,
                LoopServer::endProcess));
      }
      loops.getFirst().listen(listener, loops);
    } catch (IOException e) {
      listener.close();
      helpers.shutdownNow();
      throw e;
    }
    context.knobs().hasLoops(count);
    context.knobs().add(Settings.QUEUE_BOUND, admission::bound, admission::setBound);
    LoopMetrics.register(
        context.registry(),
        () -> loops,
        () -> loops.stream().mapToInt(Loop::openConnections).sum());
    List<Thread> threads =
        loops.stream().map(loop -> Thread.ofPlatform().name(loop.name()).start(loop)).toList();
    return new LoopServer(listener.socket().getLocalPort(), loops, threads, helpers);
  }

  @Override
  public int port() {
    return port;
  }

  @Override
  public void stop(Duration grace) {
    loops.forEach(loop -> loop.stop(grace));
    Duration atMost = grace.plus(LAST_TURN);
    try {
      for (Thread thread : threads) {
        if (!thread.join(atMost)) {
          LOG.log(Level.WARNING, "{0} does not end", thread.getName());
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    var _ = helpers.shutdownNow();
  }

  /** On a thread of its own: the broken loop is what the end of the process waits for. */
  static void endProcess() {
    Thread.ofPlatform()
        .daemon()
        .name("end-process")
        .start(() -> Runtime.getRuntime().exit(EXIT_BROKEN));
  }
}
