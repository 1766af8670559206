package lab.shell;

import io.prometheus.metrics.core.metrics.Gauge;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.time.Duration;
import java.time.ZoneId;
import java.time.zone.ZoneRules;
import java.util.concurrent.CountDownLatch;
import lab.observe.ContainerLimits;
import lab.observe.DownstreamMetrics;
import lab.observe.KernelCounters;
import lab.observe.MBeans;
import lab.observe.RequestMetrics;
import lab.observe.ThreadClasses;
import lab.recorder.LockWatch;
import lab.spec.BadValueException;
import lab.spec.Json;
import lab.spec.LineFile;
import lab.spec.Routes;
import lab.spec.Settings;

/** A model with everything the contract puts around it: metrics, knobs, MXBeans, management. */
public final class LabServer implements AutoCloseable {
  /** How long requests may still run when the server is told to stop; Docker kills after 10 s. */
  public static final Duration STOP_GRACE = Duration.ofSeconds(5);

  private static final Logger LOG = System.getLogger(LabServer.class.getName());
  private static final int EXIT_BAD_SETTINGS = 2;
  private static final int EXIT_CANNOT_START = 1;

  private final TrafficServer traffic;
  private final ManagementServer management;
  private final MBeans mbeans;
  private final LineFile file;
  private final LockWatch locks;
  private final CountDownLatch stopped = new CountDownLatch(1);

  private LabServer(
      TrafficServer traffic,
      ManagementServer management,
      MBeans mbeans,
      LineFile file,
      LockWatch locks) {
    this.traffic = traffic;
    this.management = management;
    this.mbeans = mbeans;
    this.file = file;
    this.locks = locks;
  }

  /** A model's main, until the server is stopped. Bad settings are one line, and status 2. */
  @SuppressWarnings("SystemOut") // The container's log is what the operator reads.
  public static void main(ServerModel model) throws InterruptedException {
    try {
      Settings settings = Settings.fromEnvironment(System.getenv());
      LabServer server = start(model, settings, () -> Runtime.getRuntime().exit(0));
      Runtime.getRuntime().addShutdownHook(new Thread(server::close, "stop"));
      System.out.printf(
          "%s: traffic on %d, management on %d%nsettings %s%n",
          model.name(), server.httpPort(), server.managementPort(), Json.write(settings.asMap()));
      server.stopped.await();
    } catch (BadValueException e) {
      System.err.println(model.name() + ": " + e.getMessage());
      Runtime.getRuntime().exit(EXIT_BAD_SETTINGS);
    } catch (IOException e) {
      System.err.println(model.name() + ": cannot start: " + e.getMessage());
      Runtime.getRuntime().exit(EXIT_CANNOT_START);
    } catch (RuntimeException | Error e) {
      // What has started of it would keep the process alive.
      LOG.log(Level.ERROR, "a bug: " + model.name() + " cannot start", e);
      Runtime.getRuntime().exit(EXIT_CANNOT_START);
    }
  }

  /** Starts a model; after {@code POST /restart} is answered, restart runs on another thread. */
  public static LabServer start(ServerModel model, Settings settings, Runnable restart)
      throws BadValueException, IOException {
    loadWhatLoggingReads();
    Routes routes = new Routes(model.routes());
    Identity identity = Identity.ofThisJvm(model.name(), routes);
    PrometheusRegistry registry = new PrometheusRegistry();
    Exposition exposition = new Exposition(registry, identity);
    Knobs knobs = new Knobs(settings);
    Carriers.show(knobs);
    LockWatch locks = new LockWatch();
    if (LockWatch.isPossible()) {
      knobs.add(LockWatch.THRESHOLD_MS, locks::getThresholdMs, locks::watch);
    }
    MBeans mbeans = new MBeans();
    LineFile file = new LineFile();
    TrafficServer traffic = null;
    try {
      ModelContext context =
          new ModelContext(
              identity.model(),
              settings,
              routes,
              new RequestMetrics(registry),
              new DownstreamMetrics(registry),
              file,
              knobs,
              mbeans,
              registry,
              exposition);
      traffic = model.start().start(context);
      mbeans.register(LockWatch.BEAN, locks);
      registry.register(new KernelCounters(Path.of("/proc/net"), traffic.port()));
      registry.register(new ThreadClasses(Path.of("/proc/self")));
      // It never changes in a container's life.
      ContainerLimits.ofThisContainer()
          .localPorts()
          .ifPresent(
              count ->
                  Gauge.builder()
                      .name("lab_local_ports")
                      .help("Local ports that its connections to one address may have.")
                      .register(registry)
                      .set(count));
      ManagementServer management = new ManagementServer(context, identity, restart);
      management.start();
      return new LabServer(traffic, management, mbeans, file, locks);
    } catch (BadValueException | IOException | RuntimeException | Error e) {
      if (traffic != null) {
        traffic.stop(Duration.ZERO);
      }
      mbeans.close();
      file.close();
      throw e;
    }
  }

  /**
   * A line of the log takes files of the JDK's, its configuration and its time zones. Read when no
   * descriptor is left, as when the line is about that, they fail for the JVM's life, and so does
   * every thread that logs.
   */
  private static void loadWhatLoggingReads() {
    boolean unused = LOG.isLoggable(Level.INFO);
    ZoneRules unusedRules = ZoneId.systemDefault().getRules();
  }

  public int httpPort() {
    return traffic.port();
  }

  public int managementPort() {
    return management.port();
  }

  /** Stops the model within {@link #STOP_GRACE}, then the management port. */
  @Override
  public void close() {
    traffic.stop(STOP_GRACE);
    management.close();
    locks.close();
    mbeans.close();
    try {
      file.close();
    } catch (IOException e) {
      LOG.log(Level.WARNING, "cannot remove a temporary file", e);
    }
    stopped.countDown();
  }
}
