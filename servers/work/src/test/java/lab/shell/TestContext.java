package lab.shell;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import lab.observe.DownstreamMetrics;
import lab.observe.MBeans;
import lab.observe.RequestMetrics;
import lab.recorder.LockWatch;
import lab.spec.BadValueException;
import lab.spec.LineFile;
import lab.spec.Route;
import lab.spec.Routes;
import lab.spec.Settings;

/** What the contract hands to a model, for tests of a model's parts without a server. */
public final class TestContext implements AutoCloseable {
  private final PrometheusRegistry registry = new PrometheusRegistry();
  private final MBeans mbeans = new MBeans();
  private final LineFile file = new LineFile();
  private final LockWatch locks = new LockWatch();
  private final Knobs knobs;
  private final ModelContext model;

  /**
   * @param namesAndValues {@code LAB_*} settings
   */
  public TestContext(String... namesAndValues) throws IOException, BadValueException {
    Map<String, String> environment = new HashMap<>();
    for (int i = 0; i < namesAndValues.length; i += 2) {
      environment.put(namesAndValues[i], namesAndValues[i + 1]);
    }
    Settings settings = Settings.fromEnvironment(environment);
    knobs = new Knobs(settings);
    knobs.add(LockWatch.THRESHOLD_MS, locks::getThresholdMs, locks::watch);
    Routes routes = new Routes(Route.WITH_DEMONSTRATIONS);
    model =
        new ModelContext(
            "test",
            settings,
            routes,
            new RequestMetrics(registry),
            new DownstreamMetrics(registry),
            file,
            knobs,
            mbeans,
            registry,
            new Exposition(registry, Identity.ofThisJvm("test", routes)));
  }

  public ModelContext model() {
    return model;
  }

  /** Turns a knob. */
  public void change(String knob, long value) throws BadValueException {
    knobs.change(Map.of(knob, value));
  }

  /** All metrics in Prometheus text format. */
  public String metrics() {
    return new String(model.exposition().get(), UTF_8);
  }

  /** Seconds that were waited for locks, by kind, threads and site with a space between. */
  public Map<String, Double> waitedSeconds() {
    return locks.getWaitedSeconds();
  }

  /** How long a wait for a lock must last to be counted now; 0 where none is. */
  public int lockWatchMs() {
    return locks.getThresholdMs();
  }

  @Override
  public void close() throws IOException {
    locks.close();
    mbeans.close();
    file.close();
  }
}
