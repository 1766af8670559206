package lab.observe;

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
      // Its input comes while every carrier is at work. Each time is late by what is left of that
      // second, 0.95 + 0.9 + ... for 16 of them: less where a carrier had no CPU.
      while (seen().getSum() < 5) {
        everyCarrierWorks(Duration.ofSeconds(1));
      }
      assertThat(seen().getCount()).isGreaterThan(15);
    }
  }

  @Test
  void itEndsAndItsThreadsWithIt() throws Exception {
    VirtualThreadLag lag = new VirtualThreadLag(registry);
    Thread.ofVirtual().start(() -> lag.of(Thread.currentThread())).join();
    while (seen().getCount() < 20) {
      Thread.sleep(10);
    }
    assertThat(isSampled()).isTrue();
    lag.close();
    long patience = System.nanoTime() + Duration.ofMinutes(2).toNanos();
    while (isSampled()) {
      assertThat(System.nanoTime()).isLessThan(patience);
      Thread.sleep(10);
    }
  }

  private static boolean isSampled() {
    return Thread.getAllStackTraces().keySet().stream()
        .anyMatch(thread -> thread.getName().equals("lag"));
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
