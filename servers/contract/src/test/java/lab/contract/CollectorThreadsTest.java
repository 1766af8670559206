package lab.contract;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CollectorThreadsTest {
  @TempDir private Path self = Path.of("unset");

  @Test
  void sumsTheThreadsThatCollect() throws Exception {
    thread(1, "java", 9_000_000_000L);
    thread(2, "GC Thread#0", 1_500_000_000L);
    thread(3, "G1 Conc#0", 250_000_000L);
    thread(4, "VM Thread", 250_000_000L);
    thread(5, "C2 CompilerThre", 8_000_000_000L);
    count(5);
    assertThat(seconds(new CollectorThreads(self))).isEqualTo(2.0);
  }

  @Test
  void findsThreadsThatStartLater() throws Exception {
    thread(2, "GC Thread#0", 1_000_000_000L);
    count(1);
    CollectorThreads threads = new CollectorThreads(self);
    assertThat(seconds(threads)).isEqualTo(1.0);
    thread(3, "GC Thread#1", 500_000_000L);
    count(2);
    assertThat(seconds(threads)).isEqualTo(1.5);
  }

  @Test
  void findsAThreadThatStartedAsAnotherEnded() throws Exception {
    thread(1, "C2 CompilerThre", 8_000_000_000L);
    count(1);
    CollectorThreads threads = new CollectorThreads(self);
    assertThat(threads.collect().size()).isZero();
    thread(1, "GC Thread#1", 500_000_000L);
    for (int scrape = 1; scrape < 10; scrape++) {
      assertThat(threads.collect().size()).isZero();
    }
    assertThat(seconds(threads)).isEqualTo(0.5);
  }

  @Test
  void whatTheKernelDoesNotGiveIsAbsentAndNotZero() throws Exception {
    CollectorThreads threads = new CollectorThreads(self);
    assertThat(threads.collect().size()).isZero();
    thread(1, "java", 9_000_000_000L);
    count(1);
    assertThat(threads.collect().size()).isZero();
  }

  @Test
  void collectionsOfThisJvmCount() {
    assumeThat(Path.of("/proc/self/task")).exists();
    CollectorThreads threads = new CollectorThreads(Path.of("/proc/self"));
    double before = seconds(threads);
    System.gc();
    assertThat(seconds(threads)).isGreaterThan(before);
  }

  private static double seconds(CollectorThreads threads) {
    CounterSnapshot counter = (CounterSnapshot) threads.collect().get(0);
    assertThat(counter.getMetadata().getName()).isEqualTo("lab_gc_cpu_seconds");
    return counter.getDataPoints().getFirst().getValue();
  }

  private void thread(int id, String name, long nanos) throws IOException {
    Path directory = Files.createDirectories(self.resolve("task/" + id));
    Files.writeString(directory.resolve("comm"), name + "\n", UTF_8);
    Files.writeString(directory.resolve("schedstat"), nanos + " 1 2\n", UTF_8);
  }

  private void count(int threads) throws IOException {
    Files.writeString(self.resolve("status"), "Name:\tjava\nThreads:\t" + threads + "\n", UTF_8);
  }
}
