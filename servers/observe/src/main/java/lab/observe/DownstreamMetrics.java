package lab.observe;

import static java.util.Objects.requireNonNull;

import io.prometheus.metrics.core.datapoints.CounterDataPoint;
import io.prometheus.metrics.core.datapoints.DistributionDataPoint;
import io.prometheus.metrics.core.metrics.Counter;
import io.prometheus.metrics.core.metrics.Histogram;
import io.prometheus.metrics.core.metrics.Summary;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.util.EnumMap;
import java.util.Map;
import lab.spec.DownstreamOutcome;
import org.jspecify.annotations.Nullable;

/** Counts and times downstream calls. Safe for any number of threads; no call blocks. */
public final class DownstreamMetrics {
  private final Map<DownstreamOutcome, CounterDataPoint> outcomes =
      new EnumMap<>(DownstreamOutcome.class);
  private final DistributionDataPoint pending;
  private final DistributionDataPoint call;
  private final Summary unread;
  private final PrometheusRegistry registry;
  private @Nullable Counter retries;

  public DownstreamMetrics(PrometheusRegistry registry) {
    this.registry = registry;
    Counter total =
        Counter.builder()
            .name("lab_downstream_calls_total")
            .help("Downstream calls ended, by how they ended.")
            .labelNames("outcome")
            .register(registry);
    for (DownstreamOutcome outcome : DownstreamOutcome.values()) {
      outcomes.put(outcome, total.labelValues(outcome.label()));
    }
    Histogram seconds =
        Histogram.builder()
            .name("lab_downstream_call_seconds")
            .help(
                "Time of a downstream call: pending = waiting for one of the connections,"
                    + " call = connecting, asking and reading the answer, of those that got one.")
            .labelNames("phase")
            .classicOnly()
            .classicUpperBounds(Buckets.seconds())
            .register(registry);
    pending = seconds.labelValues("pending");
    call = seconds.labelValues("call");
    unread =
        Summary.builder()
            .name("lab_downstream_unread_seconds")
            .help(
                "How much of a call an event loop left its answer unread, about, as it was at other"
                    + " work.")
            .register(registry);
  }

  /** Counts calls made once more, as the kept connection was closed; for clients that see it. */
  public synchronized Counter retries() {
    if (retries == null) {
      retries =
          Counter.builder()
              .name("lab_downstream_retries_total")
              .help(
                  "Downstream calls made once more, as the downstream had closed the kept"
                      + " connection.")
              .register(registry);
    }
    return retries;
  }

  /** A call has ended that never got a connection: it only waited for one. */
  public void neverBegun(DownstreamOutcome outcome, long pendingNanos) {
    count(outcome, pendingNanos);
  }

  public void ended(DownstreamOutcome outcome, long pendingNanos, long callNanos) {
    count(outcome, pendingNanos);
    call.observe(callNanos / 1e9);
  }

  private void count(DownstreamOutcome outcome, long pendingNanos) {
    requireNonNull(outcomes.get(outcome)).inc();
    pending.observe(pendingNanos / 1e9);
  }

  /** The same, by an event loop that left the answer unread for so long, about. */
  public void ended(
      DownstreamOutcome outcome, long pendingNanos, long callNanos, long unreadNanos) {
    ended(outcome, pendingNanos, callNanos);
    unread.observe(unreadNanos / 1e9);
  }
}
