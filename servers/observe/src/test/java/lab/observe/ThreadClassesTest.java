package lab.observe;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.stream.Collectors.toMap;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.prometheus.metrics.model.snapshots.CounterSnapshot.CounterDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot.GaugeDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ThreadClassesTest {
  private static final String RUN = "lab_thread_run_seconds ";
  private static final String QUEUE = "lab_thread_runq_seconds ";
  private static final long SECOND = 1_000_000_000L;

  @TempDir private Path self = Path.of("unset");

  @ParameterizedTest
  @CsvSource({
    "collector, GC Thread#0|G1 Conc#0|VM Thread",
    "compiler, C1 CompilerThre|C2 CompilerThre|JVMCI-native Co",
    "front-2, front-2",
    "loop, loop-1|netty-loop-2|vert.x-eventloo|reactor-http-ep",
    "worker, pool-17|connection-4711|http-nio-8080-e|executor-thread|vert.x-worker-t",
    "worker, helper-1|netty-helper-1",
    "carrier, ForkJoinPool-1-",
    "acceptor, acceptor|http-nio-8080-P|HTTP-Dispatcher|HttpClient-1-Wo|vert.x-acceptor",
    "acceptor, MasterPoller|VirtualThread-u",
    "management, management-1|prometheus-metr|lag",
    "other, java|VM Periodic Tas|Signal Dispatch|ForkJoinPool.co",
  })
  void eachThreadIsInOneClass(String expected, String names) throws Exception {
    double count = 0;
    for (String name : names.split("\\|", -1)) {
      thread((int) ++count, name, 2 * SECOND);
    }
    Map<String, Double> seen = seen(new ThreadClasses(self));
    assertThat(above0(seen).keySet())
        .containsExactlyInAnyOrder(
            RUN + expected,
            QUEUE + expected,
            "lab_threads " + expected,
            "lab_threads_read " + expected);
    assertThat(seen).containsEntry(RUN + expected, 2 * count);
    assertThat(seen).containsEntry("lab_threads " + expected, count);
    // A class without a thread is known to use nothing.
    assertThat(seen).containsKeys(RUN + "carrier", RUN + "loop").doesNotContainKey(RUN + "front");
  }

  @Test
  void sumsTheThreadsOfAClassAndCountsEachFront() throws Exception {
    thread(1, "front-1", SECOND);
    thread(2, "front-2", SECOND / 2);
    thread(3, "GC Thread#0", 3 * SECOND);
    thread(4, "G1 Conc#0", SECOND);
    assertThat(run(new ThreadClasses(self)))
        .isEqualTo(Map.of("front-1", 1.0, "front-2", 0.5, "collector", 4.0));
  }

  /** As the kernel has it: a new thread has the name of the one that started it, for a moment. */
  @Test
  void whatAFrontHasStartedIsNoFront() throws Exception {
    thread(1, "front-1", SECOND);
    thread(2, "front-1", SECOND / 4);
    ThreadClasses threads = new ThreadClasses(self);
    assertThat(run(threads)).isEqualTo(Map.of("front-1", 1.25));
    thread(2, "ForkJoinPool-1-", SECOND / 4);
    assertThat(run(threads)).isEqualTo(Map.of("front-1", 1.25));
    thread(2, "ForkJoinPool-1-", 9 * SECOND);
    assertThat(run(threads)).isEqualTo(Map.of("front-1", 1.25, "carrier", 8.75));
  }

  /** As where no file descriptor is left for it. */
  @Test
  void aThreadThatCannotBeReadCountsOnce() throws Exception {
    thread(1, "pool-1", SECOND);
    thread(2, "loop-1", SECOND);
    ThreadClasses threads = new ThreadClasses(self);
    assertThat(run(threads)).isEqualTo(Map.of("worker", 1.0, "loop", 1.0));
    thread(2, "loop-1", 2 * SECOND);
    Files.delete(self.resolve("task/1/schedstat"));
    assertThat(seen(threads)).isEmpty();
    thread(1, "pool-1", 2 * SECOND);
    assertThat(run(threads)).isEqualTo(Map.of("worker", 2.0, "loop", 2.0));
  }

  @Test
  void sumsDoNotFallWhenThreadsEnd() throws Exception {
    thread(1, "C1 CompilerThre", SECOND);
    thread(2, "C2 CompilerThre", 3 * SECOND);
    ThreadClasses threads = new ThreadClasses(self);
    assertThat(run(threads)).isEqualTo(Map.of("compiler", 4.0));
    thread(1, "C1 CompilerThre", 3 * SECOND / 2);
    end(2);
    assertThat(run(threads)).isEqualTo(Map.of("compiler", 4.5));
    // Another one gets the number of the first at once.
    thread(1, "C1 CompilerThre", SECOND / 4);
    assertThat(run(threads)).isEqualTo(Map.of("compiler", 4.75));
    end(1);
    thread(7, "C2 CompilerThre", SECOND / 4);
    assertThat(run(threads)).isEqualTo(Map.of("compiler", 5.0));
  }

  @Test
  void aThreadWithTheNumberOfAnEndedOneIsInItsOwnClass() throws Exception {
    thread(1, "C2 CompilerThre", 3 * SECOND);
    ThreadClasses threads = new ThreadClasses(self);
    run(threads);
    assertThat(run(threads)).isEqualTo(Map.of("compiler", 3.0));
    thread(1, "pool-1", SECOND);
    // What it had before it was found stays where it was counted.
    assertThat(run(threads)).isEqualTo(Map.of("compiler", 4.0));
    thread(1, "pool-1", 2 * SECOND);
    assertThat(run(threads)).isEqualTo(Map.of("compiler", 4.0, "worker", 1.0));
  }

  @Test
  void findsAThreadThatStartedAsAnUnreadOneEnded() throws Exception {
    for (int id = 1; id <= 100; id++) {
      thread(id, "pool-" + id, 0);
    }
    ThreadClasses threads = new ThreadClasses(self);
    for (int scrape = 0; scrape < 3; scrape++) {
      assertThat(seen(threads)).containsEntry("lab_threads worker", 100.0);
    }
    int unread = unread(threads);
    end(unread);
    thread(101, "GC Thread#1", SECOND);
    for (int scrape = 0; scrape < 10; scrape++) {
      threads.collect();
    }
    assertThat(run(threads)).isEqualTo(Map.of("collector", 1.0));
  }

  @Test
  void aSampleStandsForALargeClass() throws Exception {
    for (int id = 1; id <= 128; id++) {
      thread(id, "pool-" + id, SECOND);
    }
    ThreadClasses threads = new ThreadClasses(self);
    Map<String, Double> seen = seen(threads);
    assertThat(seen).containsEntry("lab_threads worker", 128.0);
    assertThat(seen).containsEntry("lab_threads_read worker", 64.0);
    assertThat(seen).containsEntry(RUN + "worker", 128.0);
    for (int id = 1; id <= 128; id++) {
      thread(id, "pool-" + id, 2 * SECOND);
    }
    assertThat(run(threads)).isEqualTo(Map.of("worker", 256.0));
  }

  /** Each that comes into the sample was counted by the others until then. */
  @Test
  void aLargeClassNeitherFallsNorJumpsAsThreadsEnd() throws Exception {
    for (int id = 1; id <= 200; id++) {
      thread(id, "pool-" + id, SECOND);
    }
    ThreadClasses threads = new ThreadClasses(self);
    for (int last = 200; last > 40; last--) {
      assertThat(run(threads).get("worker")).isCloseTo(200, within(1e-6));
      end(last);
    }
    assertThat(seen(threads)).containsEntry("lab_threads_read worker", 40.0);
    for (int id = 1; id <= 40; id++) {
      thread(id, "pool-" + id, 2 * SECOND);
    }
    assertThat(run(threads).get("worker")).isCloseTo(240, within(1e-6));
  }

  @Test
  void whatTheKernelDoesNotGiveIsAbsentAndNot0() throws Exception {
    ThreadClasses threads = new ThreadClasses(self);
    assertThat(seen(threads)).isEmpty();
    thread(1, "java", 0);
    thread(2, "loop-1", 0);
    assertThat(above0(seen(threads)).keySet())
        .containsExactlyInAnyOrder(
            "lab_threads other",
            "lab_threads loop",
            "lab_threads_read other",
            "lab_threads_read loop");
    assertThat(seen(threads).keySet()).noneMatch(name -> name.contains("seconds"));
  }

  @Test
  void thisJvmHasCollectedAndCompiled() {
    assumeThat(Path.of("/proc/self/task")).exists();
    ThreadClasses threads = new ThreadClasses(Path.of("/proc/self"));
    Map<String, Double> before = run(threads);
    System.gc();
    assertThat(run(threads).get("collector")).isGreaterThan(before.get("collector"));
    assertThat(before.get("compiler")).isPositive();
    assertThat(seen(threads).get(QUEUE + "compiler")).isNotNegative();
  }

  /** Of a class of which only a part is read, the number of one that is not. */
  private int unread(ThreadClasses threads) throws IOException {
    for (int id = 1; ; id++) {
      Path schedstat = self.resolve("task/" + id + "/schedstat");
      String text = Files.readString(schedstat, UTF_8);
      Files.delete(schedstat);
      boolean isRead = seen(threads).isEmpty();
      Files.writeString(schedstat, text, UTF_8);
      if (!isRead) {
        return id;
      }
    }
  }

  private static Map<String, Double> run(ThreadClasses threads) {
    return above0(seen(threads)).entrySet().stream()
        .filter(one -> one.getKey().startsWith(RUN))
        .collect(toMap(one -> one.getKey().substring(RUN.length()), Map.Entry::getValue));
  }

  private static Map<String, Double> above0(Map<String, Double> seen) {
    Map<String, Double> some = new HashMap<>(seen);
    some.values().removeIf(value -> value == 0);
    return some;
  }

  private static Map<String, Double> seen(ThreadClasses threads) {
    Map<String, Double> seen = new HashMap<>();
    for (MetricSnapshot snapshot : threads.collect()) {
      snapshot
          .getDataPoints()
          .forEach(
              point -> {
                var labels = point.getLabels();
                String group =
                    Objects.requireNonNullElse(labels.get("front"), labels.get("threads"));
                double value =
                    point instanceof CounterDataPointSnapshot counter
                        ? counter.getValue()
                        : ((GaugeDataPointSnapshot) point).getValue();
                seen.put(snapshot.getMetadata().getName() + " " + group, value);
              });
    }
    return seen;
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
}
