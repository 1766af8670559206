package lab.observe;

import static org.assertj.core.api.Assertions.assertThat;

import io.prometheus.metrics.model.registry.PrometheusRegistry;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

/** A framework's loops, as the scrape sees them. */
class LoopThreadsTest {
  @Test
  void aServerThatEndsMayStillHaveLoopsOfTheSameNames() throws Exception {
    CountDownLatch end = new CountDownLatch(1);
    List<Thread> loops = new ArrayList<>();
    PrometheusRegistry registry = new PrometheusRegistry();
    try {
      // Two servers, one after the other, of which the first one's loops have not ended.
      for (String name : List.of("test-loop-1", "test-loop-2", "test-loop-1", "test-loop-2")) {
        loops.add(Thread.ofPlatform().daemon().name(name).start(() -> waitFor(end)));
      }
      LoopThreads.register(registry, "test-loop-", 2, () -> 0);
      assertThat(registry.scrape("lab_event_loop_busy_seconds"::equals).stream())
          .flatMap(MetricSnapshot::getDataPoints)
          .map(each -> each.getLabels().get("loop"))
          .containsExactly("test-loop-1", "test-loop-2");
    } finally {
      end.countDown();
      for (Thread loop : loops) {
        loop.join();
      }
    }
  }

  private static void waitFor(CountDownLatch end) {
    try {
      end.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
