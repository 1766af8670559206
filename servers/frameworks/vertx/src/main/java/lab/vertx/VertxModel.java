package lab.vertx;

import io.vertx.core.DeploymentOptions;
import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import io.vertx.core.file.FileSystemOptions;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import lab.observe.LoopThreads;
import lab.shell.LabServer;
import lab.shell.ModelContext;
import lab.shell.ServerModel;
import lab.shell.TrafficServer;
import lab.work.nonblocking.DownstreamCalls;

/** Model {@code vertx}: as many event loops as the lab says, and a verticle for each of them. */
public final class VertxModel implements TrafficServer {
  public static final ServerModel MODEL = new ServerModel("vertx", VertxModel::start);

  private static final Logger LOG = System.getLogger(VertxModel.class.getName());

  /** What closing may take beyond the grace of the requests. */
  private static final Duration END = Duration.ofSeconds(2);

  private final Vertx vertx;
  private final List<HttpVerticle> verticles;

  private VertxModel(Vertx vertx, List<HttpVerticle> verticles) {
    this.vertx = vertx;
    this.verticles = verticles;
  }

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }

  private static VertxModel start(ModelContext context) throws IOException {
    boolean shipped = context.settings().shipped();
    int cpus = Runtime.getRuntime().availableProcessors();
    int loops =
        context.settings().loops(shipped ? VertxOptions.DEFAULT_EVENT_LOOP_POOL_SIZE : cpus);
    AtomicInteger openConnections = new AtomicInteger();
    context.knobs().hasLoops(loops);
    LoopThreads.register(
        context.registry(), "vert.x-eventloop-thread-", loops, openConnections::get);
    Vertx vertx = Vertx.vertx(options(loops, shipped));
    if (shipped && !vertx.isNativeTransportEnabled()) {
      // Vert.x would go on with NIO and say nothing.
      close(vertx.close(), END);
      throw new IOException("no native transport", vertx.unavailableNativeTransportCause());
    }
    context.knobs().ofFramework("transport", vertx.isNativeTransportEnabled() ? "native" : "nio");
    LoopClients clients = new LoopClients();
    DownstreamCalls downstream = new DownstreamCalls(context, clients);
    Queue<HttpVerticle> verticles = new ConcurrentLinkedQueue<>();
    try {
      var _ =
          vertx
              .deployVerticle(
                  () -> {
                    HttpVerticle verticle =
                        new HttpVerticle(context, clients, downstream, openConnections);
                    verticles.add(verticle);
                    return verticle;
                  },
                  new DeploymentOptions().setInstances(loops))
              .await(30, TimeUnit.SECONDS);
      return new VertxModel(vertx, List.copyOf(verticles));
    } catch (Exception e) {
      close(vertx.close(), END);
      // Vert.x throws what the deployment failed with, checked or not.
      throw e instanceof IOException cause ? cause : new IOException(e);
    }
  }

  @Override
  public int port() {
    return verticles.getFirst().port();
  }

  @Override
  public void stop(Duration grace) {
    close(Future.join(verticles.stream().map(each -> each.drain(grace)).toList()), grace.plus(END));
    close(vertx.close(), END);
  }

  private static VertxOptions options(int loops, boolean shipped) {
    return new VertxOptions()
        .setEventLoopPoolSize(loops)
        .setPreferNativeTransport(shipped)
        // Nothing is served from the class path.
        .setFileSystemOptions(
            new FileSystemOptions()
                .setFileCachingEnabled(false)
                .setClassPathResolvingEnabled(false));
  }

  private static void close(Future<?> closing, Duration limit) {
    try {
      var _ = closing.await(limit.toNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException | RuntimeException e) {
      LOG.log(Level.WARNING, "not everything closed in time", e);
    }
  }
}
