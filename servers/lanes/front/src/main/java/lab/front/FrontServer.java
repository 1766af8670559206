package lab.front;

import io.prometheus.metrics.core.metrics.CounterWithCallback;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.function.Function;
import lab.reactor.Exchange;
import lab.reactor.Reactor;
import lab.reactor.ReactorGroup;
import lab.shell.ModelContext;
import lab.shell.ServerModel;
import lab.shell.TrafficServer;
import lab.spec.Settings;
import lab.work.blocking.BlockingRoutes;
import lab.work.blocking.Demonstrations;
import lab.work.blocking.WorkerPool;

/** Fronts that read requests, and workers that work on them. */
public final class FrontServer implements TrafficServer {
  private static final Logger LOG = System.getLogger(FrontServer.class.getName());

  private final ReactorGroup group;
  private final ExecutorService workers;
  private final BlockingRoutes routes;

  private FrontServer(ModelContext context, Function<Settings, ExecutorService> makeWorkers)
      throws IOException {
    group = new ReactorGroup(context);
    int count = context.settings().fronts();
    List<Front> fronts = group.open("front-", count, Front::new);
    workers = makeWorkers.apply(context.settings());
    routes = new BlockingRoutes(context);
    context.knobs().has(Settings.FRONTS.name());
    CounterWithCallback.builder()
        .name("lab_front_busy_seconds_total")
        .help("Time in which the front did not wait for events; its rate is the utilisation.")
        .labelNames("front")
        .callback(
            callback -> fronts.forEach(f -> callback.call(f.probe().busyNanos() / 1e9, f.name())))
        .register(context.registry());
    if (workers instanceof ThreadPoolExecutor pool) {
      context.knobs().has(Settings.POOL_ORDER);
      group.start(WorkerPool.publish(pool, context)::limit);
    } else {
      group.start();
    }
  }

  /** A model that differs from its siblings in its workers alone; the server closes them. */
  public static ServerModel model(String name, Function<Settings, ExecutorService> workers) {
    return new ServerModel(
        name, Demonstrations.routes(), context -> new FrontServer(context, workers));
  }

  @Override
  public int port() {
    return group.port();
  }

  @Override
  public void stop(Duration grace) {
    group.stop(grace);
    // After the connections are closed: what is broken off now is no answer of the downstream's.
    List<Runnable> dropped = workers.shutdownNow();
    routes.close();
    if (!dropped.isEmpty()) {
      LOG.log(Level.WARNING, "stopped with {0} requests still queued", dropped.size());
    }
  }

  /** On a worker's thread. */
  private void workOn(Exchange exchange) {
    exchange.begin();
    if (exchange.isGone()) {
      exchange.abort();
      return;
    }
    try {
      exchange.answer(routes.answer(exchange.call()));
    } catch (InterruptedException e) {
      // Stopping: the grace is over.
      Thread.currentThread().interrupt();
      exchange.abort();
    }
  }

  /** A reactor that never works on a request. */
  private final class Front extends Reactor {
    Front(String name) throws IOException {
      super(name, group);
    }

    @Override
    protected void handle(Exchange exchange) throws IOException {
      try {
        workers.execute(() -> workOn(exchange));
      } catch (RejectedExecutionException e) {
        throw new IOException("the server has stopped", e);
      }
    }
  }
}
