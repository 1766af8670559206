package lab.observe;

import static java.util.Objects.requireNonNull;

import io.prometheus.metrics.core.datapoints.CounterDataPoint;
import io.prometheus.metrics.core.datapoints.DistributionDataPoint;
import io.prometheus.metrics.core.datapoints.GaugeDataPoint;
import io.prometheus.metrics.core.metrics.Counter;
import io.prometheus.metrics.core.metrics.Gauge;
import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import io.prometheus.metrics.core.metrics.Histogram;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.IntSupplier;
import lab.spec.Outcome;
import lab.spec.Route;

/**
 * Counts and times requests, in the same words for every model. Safe for any number of threads; no
 * call blocks. A route's series exist from its first request on, all of them at once.
 */
public final class RequestMetrics {
  private final Histogram seconds;
  private final Counter total;
  private final Gauge inFlight;

  /** Label lookups cost more than the counting, so each route's children are looked up once. */
  private final ConcurrentMap<Route, Series> series = new ConcurrentHashMap<>();

  public RequestMetrics(PrometheusRegistry registry) {
    seconds =
        Histogram.builder()
            .name("lab_http_request_seconds")
            .help(
                "Time of a request that was worked on and answered: queue = waiting for a thread"
                    + " or its event loop, service = the rest until answered, total = both.")
            .labelNames("route", "phase")
            .classicOnly()
            .classicUpperBounds(Buckets.seconds())
            .register(registry);
    total =
        Counter.builder()
            .name("lab_http_requests_total")
            .help("Requests ended, by how they ended. Input that is no request has the route none.")
            .labelNames("route", "outcome")
            .register(registry);
    inFlight =
        Gauge.builder()
            .name("lab_http_requests_in_flight")
            .help("Requests begun and not yet answered; those still queued are not among them.")
            .labelNames("route")
            .register(registry);
  }

  /**
   * Adds the number of connections that a server's clients have open, in flight or idle; called by
   * the scrape. The kernel's list of sockets is no substitute: it takes 10 ms of CPU at 2,000.
   */
  public static void registerConnections(PrometheusRegistry registry, IntSupplier open) {
    GaugeWithCallback.builder()
        .name("lab_http_connections_open")
        .help("Client connections open, in flight or idle.")
        .callback(callback -> callback.call(open.getAsInt()))
        .register(registry);
  }

  /** A request's work begins. To be followed by exactly one {@link #ended}. */
  public void begun(Route route) {
    series(route).inFlight.inc();
  }

  /**
   * A request has ended. One whose client was gone has no time: some models notice that at once,
   * and others when they answer. One that a full queue refused has none either: it never waited and
   * was never worked on, and would make the means of those that were look short.
   *
   * @param queueNanos from hand-over to begun
   * @param serviceNanos from begun to the last byte written
   */
  public void ended(Route route, Outcome outcome, long queueNanos, long serviceNanos) {
    Series counted = series(route);
    if (outcome != Outcome.ABORTED && outcome != Outcome.REJECTED) {
      counted.queue.observe(queueNanos / 1e9);
      counted.service.observe(serviceNanos / 1e9);
      counted.total.observe((queueNanos + serviceNanos) / 1e9);
    }
    requireNonNull(counted.outcomes.get(outcome)).inc();
    // Last: what is no longer in flight has been counted.
    counted.inFlight.dec();
  }

  /** Counts input that is no request and was refused with a 4xx. It has no route and no time. */
  public void malformed() {
    requireNonNull(series(Route.NONE).outcomes.get(Outcome.CLIENT_ERROR)).inc();
  }

  private Series series(Route route) {
    Series known = series.get(route);
    return known != null ? known : series.computeIfAbsent(route, Series::new);
  }

  /** One route's children. */
  private final class Series {
    private final DistributionDataPoint queue;
    private final DistributionDataPoint service;
    private final DistributionDataPoint total;
    private final Map<Outcome, CounterDataPoint> outcomes = new EnumMap<>(Outcome.class);
    private final GaugeDataPoint inFlight;

    Series(Route each) {
      String route = each.path();
      queue = seconds.labelValues(route, "queue");
      service = seconds.labelValues(route, "service");
      total = seconds.labelValues(route, "total");
      inFlight = RequestMetrics.this.inFlight.labelValues(route);
      for (Outcome outcome : Outcome.values()) {
        outcomes.put(outcome, RequestMetrics.this.total.labelValues(route, outcome.label()));
      }
    }
  }
}
