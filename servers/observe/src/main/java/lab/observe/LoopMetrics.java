package lab.observe;

import io.prometheus.metrics.core.metrics.CounterWithCallback;
import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.util.List;
import java.util.OptionalInt;
import java.util.function.IntSupplier;
import java.util.function.Supplier;

/** What can be seen of event loops. A loop that is always busy is the model's bottleneck. */
public final class LoopMetrics {
  /** One event loop, read by the scrape: from any thread, without blocking. */
  public interface Observed {
    String name();

    /** Time since its start in which it did not wait for events, in nanoseconds. */
    long busyNanos();

    /** Requests or tasks handed to the loop and not yet begun. Empty if it cannot tell. */
    OptionalInt queueDepth();
  }

  private LoopMetrics() {}

  /** Adds the metrics of loops, which each scrape asks for, and of their client connections. */
  public static void register(
      PrometheusRegistry registry,
      Supplier<? extends List<? extends Observed>> loops,
      IntSupplier openConnections) {
    register(registry, loops);
    RequestMetrics.registerConnections(registry, openConnections);
  }

  /** The same without their connections. */
  public static void register(
      PrometheusRegistry registry, Supplier<? extends List<? extends Observed>> loops) {
    CounterWithCallback.builder()
        .name("lab_event_loop_busy_seconds_total")
        .help("Time in which the loop did not wait for events; its rate is the utilisation.")
        .labelNames("loop")
        .callback(
            callback -> loops.get().forEach(l -> callback.call(l.busyNanos() / 1e9, l.name())))
        .register(registry);
    GaugeWithCallback.builder()
        .name("lab_event_loop_queue_depth")
        .help("Requests or tasks handed to the loop that wait for it to begin with them.")
        .labelNames("loop")
        .callback(
            callback ->
                loops.get().forEach(l -> l.queueDepth().ifPresent(n -> callback.call(n, l.name()))))
        .register(registry);
  }
}
