package lab.observe;

import static org.assertj.core.api.Assertions.assertThat;

import io.prometheus.metrics.model.registry.PrometheusRegistry;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import lab.spec.Outcome;
import lab.spec.Route;
import org.junit.jupiter.api.Test;

class RequestMetricsTest {
  private static final int REQUESTS = 3_000;

  private final PrometheusRegistry registry = new PrometheusRegistry();
  private final RequestMetrics requests = new RequestMetrics(registry);

  /** Whoever waits for the end of requests, as the driver does, reads what they count after it. */
  @Test
  void whatIsNoLongerInFlightHasBeenCounted() {
    try (ExecutorService other = Executors.newSingleThreadExecutor()) {
      for (int request = 1; request <= REQUESTS; request++) {
        requests.begun(Route.HEALTH);
        other.execute(() -> requests.ended(Route.HEALTH, Outcome.OK, 0, 0));
        while (inFlight() > 0) {
          Thread.onSpinWait();
        }
        assertThat(ended()).isEqualTo(request);
      }
    }
  }

  private double inFlight() {
    return registry.scrape("lab_http_requests_in_flight"::equals).stream()
        .mapToDouble(one -> ((GaugeSnapshot) one).getDataPoints().getFirst().getValue())
        .sum();
  }

  private double ended() {
    return registry.scrape("lab_http_requests"::equals).stream()
        .flatMap(one -> ((CounterSnapshot) one).getDataPoints().stream())
        .mapToDouble(CounterSnapshot.CounterDataPointSnapshot::getValue)
        .sum();
  }
}
