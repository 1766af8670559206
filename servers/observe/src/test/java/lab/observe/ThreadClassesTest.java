package lab.observe;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.CounterSnapshot.CounterDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ThreadClassesTest {
  private static final String COLLECTOR = "lab_gc_cpu_seconds";
  private static final String FRONT = "lab_front_cpu_seconds front-";
  private static final String WAIT = "lab_front_wait_seconds front-";
  private static final String COMPILER = "lab_jit_cpu_seconds";
  private static final String WAITED = "lab_jit_wait_seconds";

  @TempDir private Path self = Path.of("unset");

  @Test
  void sumsTheThreadsThatCollectAndThoseThatCompile() throws Exception {
    thread(1, "java", 9_000_000_000L);
    thread(2, "GC Thread#0", 1_500_000_000L);
    thread(3, "G1 Conc#0", 250_000_000L);
    thread(4, "VM Thread", 250_000_000L);
    thread(5, "C2 CompilerThre", 8_000_000_000L);
    thread(6, "C1 CompilerThre", 500_000_000L);
    thread(7, "JVMCI-native Co", 1_000_000_000L);
    count(7);
    // Each waited for a tenth of that.
    assertThat(told(new ThreadClasses(self)))
        .isEqualTo(Map.of(COLLECTOR, 2.0, COMPILER, 9.5, WAITED, 0.95));
  }

  @Test
  void countsEachFront() throws Exception {
    thread(1, "front-1", 1_000_000_000L);
    thread(2, "front-2", 500_000_000L);
    thread(3, "pool-1", 9_000_000_000L);
    count(3);
    assertThat(told(new ThreadClasses(self)))
        .isEqualTo(Map.of(FRONT + "1", 1.0, FRONT + "2", 0.5, WAIT + "1", 0.1, WAIT + "2", 0.05));
  }

  /** As the kernel has it: a new thread has the name of the one that started it, for a moment. */
  @Test
  void whatAFrontHasStartedIsNoFront() throws Exception {
    thread(1, "front-1", 1_000_000_000L);
    thread(2, "front-1", 1_000_000L);
    count(2);
    ThreadClasses threads = new ThreadClasses(self);
    assertThat(told(threads)).isEqualTo(Map.of(FRONT + "1", 1.001, WAIT + "1", 0.1001));
    thread(2, "ForkJoinPool-1-", 9_000_000_000L);
    for (int scrape = 0; scrape < 20; scrape++) {
      assertThat(told(threads)).isEqualTo(Map.of(FRONT + "1", 1.001, WAIT + "1", 0.1001));
    }
  }

  /** As where no file descriptor is left for it. */
  @Test
  void aThreadWhoseNameCannotBeReadCountsOnce() throws Exception {
    thread(1, "front-1", 1_000_000_000L);
    count(1);
    ThreadClasses threads = new ThreadClasses(self);
    assertThat(told(threads)).isEqualTo(Map.of(FRONT + "1", 1.0, WAIT + "1", 0.1));
    Files.delete(self.resolve("task/1/comm"));
    assertThat(told(threads)).isEmpty();
    thread(1, "front-1", 1_000_000_000L);
    for (int scrape = 0; scrape < 20; scrape++) {
      assertThat(told(threads)).isEqualTo(Map.of(FRONT + "1", 1.0, WAIT + "1", 0.1));
    }
  }

  @Test
  void findsThreadsThatStartLater() throws Exception {
    thread(2, "GC Thread#0", 1_000_000_000L);
    count(1);
    ThreadClasses threads = new ThreadClasses(self);
    assertThat(told(threads)).isEqualTo(Map.of(COLLECTOR, 1.0));
    thread(3, "GC Thread#1", 500_000_000L);
    count(2);
    assertThat(told(threads)).isEqualTo(Map.of(COLLECTOR, 1.5));
  }

  @Test
  void findsAThreadThatStartedAsAnotherEnded() throws Exception {
    thread(1, "java", 8_000_000_000L);
    count(1);
    ThreadClasses threads = new ThreadClasses(self);
    assertThat(told(threads)).isEmpty();
    end(1);
    thread(2, "GC Thread#1", 500_000_000L);
    for (int scrape = 1; scrape < 10; scrape++) {
      assertThat(told(threads)).isEmpty();
    }
    assertThat(told(threads)).isEqualTo(Map.of(COLLECTOR, 0.5));
  }

  /** 5,000 threads of a pool would be read at every look. A new thread has its parent's name. */
  @Test
  void theNameOfAThreadThatDoesOtherWorkIsReadTwice() throws Exception {
    thread(1, "main", 8_000_000_000L);
    thread(2, "main", 8_000_000_000L);
    count(1);
    ThreadClasses threads = new ThreadClasses(self);
    assertThat(told(threads)).isEmpty();
    thread(2, "GC Thread#1", 500_000_000L);
    count(2);
    assertThat(told(threads)).isEqualTo(Map.of(COLLECTOR, 0.5));
    thread(1, "GC Thread#2", 700_000_000L);
    count(3);
    assertThat(told(threads)).isEqualTo(Map.of(COLLECTOR, 0.5));
  }

  @Test
  void whatAThreadUsedThatHasEndedStillCounts() throws Exception {
    thread(1, "C1 CompilerThre", 1_000_000_000L);
    thread(2, "C2 CompilerThre", 3_000_000_000L);
    count(2);
    ThreadClasses threads = new ThreadClasses(self);
    assertThat(told(threads)).isEqualTo(Map.of(COMPILER, 4.0, WAITED, 0.4));
    thread(1, "C1 CompilerThre", 1_500_000_000L);
    end(2);
    count(1);
    assertThat(told(threads)).isEqualTo(Map.of(COMPILER, 4.5, WAITED, 0.45));
    end(1);
    count(0);
    assertThat(told(threads)).isEqualTo(Map.of(COMPILER, 4.5, WAITED, 0.45));
    thread(7, "C2 CompilerThre", 250_000_000L);
    count(1);
    assertThat(told(threads)).isEqualTo(Map.of(COMPILER, 4.75, WAITED, 0.475));
  }

  @Test
  void findsACompilerThatStartedAsAnotherEndedAtOnce() throws Exception {
    thread(1, "C2 CompilerThre", 1_000_000_000L);
    count(1);
    ThreadClasses threads = new ThreadClasses(self);
    assertThat(told(threads)).isEqualTo(Map.of(COMPILER, 1.0, WAITED, 0.1));
    end(1);
    thread(2, "C2 CompilerThre", 500_000_000L);
    assertThat(told(threads)).isEqualTo(Map.of(COMPILER, 1.5, WAITED, 0.15));
  }

  @Test
  void whatTheKernelDoesNotGiveIsAbsentAndNotZero() throws Exception {
    ThreadClasses threads = new ThreadClasses(self);
    assertThat(told(threads)).isEmpty();
    thread(1, "java", 9_000_000_000L);
    count(1);
    assertThat(told(threads)).isEmpty();
    // A kernel without these counts tells 0.
    thread(3, "C2 CompilerThre", 0);
    count(2);
    assertThat(told(threads)).isEmpty();
    // It is there, and cannot be read.
    Files.createDirectories(self.resolve("task/2"));
    Files.writeString(self.resolve("task/2/comm"), "C2 CompilerThre\n", UTF_8);
    count(3);
    assertThat(told(threads)).isEmpty();
  }

  @Test
  void thisJvmHasCollectedAndCompiled() {
    assumeThat(Path.of("/proc/self/task")).exists();
    ThreadClasses threads = new ThreadClasses(Path.of("/proc/self"));
    Map<String, Double> before = told(threads);
    System.gc();
    assertThat(told(threads).get(COLLECTOR)).isGreaterThan(before.get(COLLECTOR));
    assertThat(before.get(COMPILER)).isPositive();
    assertThat(before.get(WAITED)).isNotNegative();
  }

  private static Map<String, Double> told(ThreadClasses threads) {
    Map<String, Double> told = new HashMap<>();
    for (MetricSnapshot counter : threads.collect()) {
      for (CounterDataPointSnapshot point : ((CounterSnapshot) counter).getDataPoints()) {
        String front = Objects.requireNonNullElse(point.getLabels().get("front"), "");
        told.put((counter.getMetadata().getName() + " " + front).strip(), point.getValue());
      }
    }
    return told;
  }

  private void thread(int id, String name, long nanos) throws IOException {
    Path directory = Files.createDirectories(self.resolve("task/" + id));
    Files.writeString(directory.resolve("comm"), name + "\n", UTF_8);
    Files.writeString(directory.resolve("schedstat"), nanos + " " + nanos / 10 + " 2\n", UTF_8);
  }

  private void end(int id) throws IOException {
    Path directory = self.resolve("task/" + id);
    for (String file : new String[] {"comm", "schedstat"}) {
      Files.delete(directory.resolve(file));
    }
    Files.delete(directory);
  }

  private void count(int threads) throws IOException {
    Files.writeString(self.resolve("status"), "Name:\tjava\nThreads:\t" + threads + "\n", UTF_8);
  }
}
