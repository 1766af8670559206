package lab.front;

import io.prometheus.metrics.core.metrics.CounterWithCallback;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.function.Function;
import java.util.function.IntSupplier;
import lab.contract.ModelContext;
import lab.contract.OpenConnections;
import lab.contract.RequestMetrics;
import lab.contract.Route;
import lab.contract.RouteCall;
import lab.contract.Routes;
import lab.contract.ServerModel;
import lab.contract.Settings;
import lab.contract.TrafficServer;
import lab.contract.blocking.BlockingRoutes;
import lab.contract.blocking.Demonstrations;
import lab.contract.blocking.WorkerPool;
import lab.contract.serving.Admission;
import lab.contract.serving.Answers;
import lab.wire.Request;

/** The fronts, the workers, and what they share. */
public final class FrontServer implements TrafficServer {
  private static final Logger LOG = System.getLogger(FrontServer.class.getName());
  private static final int EXIT_BROKEN = 70;

  /** Beyond the grace, for a front that is in the middle of something. */
  private static final Duration LAST_TURN = Duration.ofSeconds(1);

  private final Settings settings;
  private final RequestMetrics requests;
  private final Routes known;
  private final Answers answers;
  private final ServerSocketChannel listener;
  private final List<Front> fronts = new ArrayList<>();
  private final List<Thread> threads = new ArrayList<>();
  private final ExecutorService workers;
  private final BlockingRoutes routes;
  private final Admission admission;
  private final IntSupplier mostAdmitted;

  private FrontServer(
      ModelContext context,
      ServerSocketChannel listener,
      Function<Settings, ExecutorService> makeWorkers)
      throws IOException {
    this.settings = context.settings();
    this.requests = context.requests();
    this.known = context.routes();
    this.answers = new Answers(context.model());
    this.listener = listener;
    this.admission = new Admission(settings.queueBound());
    for (int i = 1; i <= settings.fronts(); i++) {
      fronts.add(new Front("front-" + i, this));
    }
    fronts.getFirst().listen(listener, fronts);
    // From here on there are threads: nothing may fail any more.
    this.workers = makeWorkers.apply(settings);
    this.routes = new BlockingRoutes(context);
    if (workers instanceof ThreadPoolExecutor pool) {
      mostAdmitted = WorkerPool.publish(pool, context)::limit;
      context.knobs().hasPoolOrder();
    } else {
      mostAdmitted = admission::bound;
      context.knobs().add(Settings.QUEUE_BOUND, admission::bound, admission::setBound);
    }
    context.knobs().hasFronts(settings.fronts());
    CounterWithCallback.builder()
        .name("lab_front_busy_seconds_total")
        .help("Time in which the front did not wait for events; its rate is the utilisation.")
        .labelNames("front")
        .callback(
            callback -> fronts.forEach(each -> callback.call(each.busyNanos() / 1e9, each.name())))
        .register(context.registry());
    OpenConnections.register(context.registry(), this::openConnections);
    fronts.forEach(each -> threads.add(Thread.ofPlatform().name(each.name()).start(each)));
  }

  /**
   * A model that differs from its siblings in its workers alone.
   *
   * @param workers makes the threads that requests are worked on; the server closes it
   */
  public static ServerModel model(String name, Function<Settings, ExecutorService> workers) {
    return new ServerModel() {
      @Override
      public String name() {
        return name;
      }

      @Override
      public Set<Route> routes() {
        return Demonstrations.routes();
      }

      @Override
      public TrafficServer start(ModelContext context) throws IOException {
        return FrontServer.start(context, workers);
      }
    };
  }

  private static FrontServer start(
      ModelContext context, Function<Settings, ExecutorService> workers) throws IOException {
    ServerSocketChannel listener = ServerSocketChannel.open();
    try {
      listener.configureBlocking(false);
      Settings settings = context.settings();
      listener.bind(new InetSocketAddress(settings.httpPort()), settings.backlog());
      return new FrontServer(context, listener, workers);
    } catch (IOException e) {
      listener.close();
      throw e;
    }
  }

  @Override
  public int port() {
    return listener.socket().getLocalPort();
  }

  @Override
  public void stop(Duration grace) {
    fronts.forEach(each -> each.stop(grace));
    try {
      for (Thread thread : threads) {
        if (!thread.join(grace.plus(LAST_TURN))) {
          LOG.log(Level.WARNING, "{0} does not end", thread.getName());
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    // After the connections are closed: what is broken off now is no answer of the downstream's.
    List<Runnable> dropped = workers.shutdownNow();
    routes.close();
    if (!dropped.isEmpty()) {
      LOG.log(Level.WARNING, "stopped with {0} requests still queued", dropped.size());
    }
  }

  // --- what fronts and workers share; any thread -----------------------------------------------

  RequestMetrics requests() {
    return requests;
  }

  BlockingRoutes routes() {
    return routes;
  }

  Answers answers() {
    return answers;
  }

  Admission admission() {
    return admission;
  }

  RouteCall resolve(Request request) {
    return known.resolve(request.method(), request.path(), request.query());
  }

  Duration keepAliveTimeout() {
    return settings.keepAliveTimeout();
  }

  boolean tcpNodelay() {
    return settings.tcpNodelay();
  }

  /** True if as many connections idle as may. */
  boolean hasEnoughIdle() {
    return openConnections() - admission.admitted() >= settings.keepAliveMaxIdle();
  }

  /** Takes one more request on, if there is a place for it. */
  boolean admits() {
    return admission.tryEnter(mostAdmitted.getAsInt());
  }

  /** Hands an admitted request to a worker. */
  void handOver(Exchange exchange) throws IOException {
    boolean handed = false;
    try {
      workers.execute(exchange);
      handed = true;
    } catch (RejectedExecutionException e) {
      throw new IOException("the server has stopped", e);
    } finally {
      if (!handed) {
        admission.leave();
      }
    }
  }

  /** A front cannot go on. */
  void broken() {
    // On a thread of its own: the broken front is what the end of the process waits for.
    Thread.ofPlatform()
        .daemon()
        .name("end-process")
        .start(() -> Runtime.getRuntime().exit(EXIT_BROKEN));
  }

  private int openConnections() {
    int open = 0;
    for (Front each : fronts) {
      open += each.open();
    }
    return open;
  }
}
