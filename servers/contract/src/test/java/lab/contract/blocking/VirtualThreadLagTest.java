package lab.contract.blocking;

import static org.assertj.core.api.Assertions.assertThat;

import io.prometheus.metrics.model.registry.PrometheusRegistry;
import io.prometheus.metrics.model.snapshots.SummarySnapshot;
import io.prometheus.metrics.model.snapshots.SummarySnapshot.SummaryDataPointSnapshot;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class VirtualThreadLagTest {
  private final PrometheusRegistry registry = new PrometheusRegistry();

  @Test
  void aServerWithoutVirtualThreadsHasNone() {
    try (VirtualThreadLag lag = new VirtualThreadLag(registry)) {
      lag.of(Thread.currentThread());
      assertThat(registry.scrape().size()).isZero();
    }
  }

  @Test
  void aThreadThatWaitsForACarrierIsLate() throws Exception {
    try (VirtualThreadLag lag = new VirtualThreadLag(registry)) {
      Thread.ofVirtual().start(() -> lag.of(Thread.currentThread())).join();
      // Soon it sleeps, and wakes while every carrier is at work.
      List<Thread> working = new ArrayList<>();
      for (int i = 0; i < Runtime.getRuntime().availableProcessors(); i++) {
        working.add(Thread.ofVirtual().start(() -> compute(Duration.ofSeconds(1))));
      }
      for (Thread each : working) {
        each.join();
      }
      // Every time that passed meanwhile is late by what was left: 0.95 + 0.9 + ... of a second.
      while (seen().getSum() < 5) {
        Thread.sleep(10);
      }
      assertThat(seen().getCount()).isGreaterThan(15);
    }
  }

  private SummaryDataPointSnapshot seen() {
    return ((SummarySnapshot) registry.scrape().get(0)).getDataPoints().getFirst();
  }

  private static void compute(Duration time) {
    long end = System.nanoTime() + time.toNanos();
    while (System.nanoTime() < end) {
      Thread.onSpinWait();
    }
  }
}
