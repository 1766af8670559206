package lab.contract.blocking;

import static org.assertj.core.api.Assertions.assertThat;

import io.prometheus.metrics.model.registry.PrometheusRegistry;
import io.prometheus.metrics.model.snapshots.SummarySnapshot;
import io.prometheus.metrics.model.snapshots.SummarySnapshot.SummaryDataPointSnapshot;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
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
      // Soon it sleeps, and wakes while every carrier is at work. Every time that passed meanwhile
      // is late by what was left, 0.95 + 0.9 + ... of a second: less where a carrier had no CPU.
      while (seen().getSum() < 5) {
        everyCarrierWorks(Duration.ofSeconds(1));
      }
      assertThat(seen().getCount()).isGreaterThan(15);
    }
  }

  private static void everyCarrierWorks(Duration time) throws InterruptedException {
    int carriers = Runtime.getRuntime().availableProcessors();
    CountDownLatch begun = new CountDownLatch(carriers);
    List<Thread> working = new ArrayList<>();
    for (int i = 0; i < carriers; i++) {
      working.add(Thread.ofVirtual().start(() -> compute(begun, time)));
    }
    for (Thread each : working) {
      each.join();
    }
    Thread.sleep(50);
  }

  private SummaryDataPointSnapshot seen() {
    return ((SummarySnapshot) registry.scrape().get(0)).getDataPoints().getFirst();
  }

  private static void compute(CountDownLatch begun, Duration time) {
    begun.countDown();
    while (begun.getCount() > 0) {
      Thread.onSpinWait();
    }
    long end = System.nanoTime() + time.toNanos();
    while (System.nanoTime() < end) {
      Thread.onSpinWait();
    }
  }
}
