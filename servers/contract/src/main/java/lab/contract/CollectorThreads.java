package lab.contract;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.prometheus.metrics.model.registry.MultiCollector;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.CounterSnapshot.CounterDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The CPU time of the garbage collector: of all its threads, as the kernel counts it (proc(5),
 * {@code /proc/self/task/<id>/schedstat}). Read once per scrape.
 *
 * <p>The time of a collection is no measure of it: a collector on a full machine waits for CPUs
 * too. The JDK tells the CPU time from version 26 on (MemoryMXBean.getTotalGcCpuTime). In 25 it is
 * an internal counter, {@code sun.threads.total_gc_cpu_time}, which is the sum of the same threads.
 */
final class CollectorThreads implements MultiCollector {
  /**
   * How HotSpot's threads begin that do nothing but collect (G1, Parallel, ZGC, Shenandoah). The VM
   * thread leads collections, and is the serial collector; what else it does is little.
   */
  private static final List<String> NAMES =
      List.of("GC Thread#", "G1 ", "ZWorker", "ZDriver", "Shenandoah", "VM Thread");

  /** It looks at all threads again after so many scrapes, even if their number is the same. */
  private static final int SCRAPES = 10;

  private static final double NANOS_PER_SECOND = 1e9;

  private final Path self;

  /** The directories of the collector's threads. They are started once and never end. */
  private List<Path> threads = List.of();

  private String threadCount = "";
  private int scrapesLeft;

  /**
   * @param self normally {@code /proc/self}
   */
  CollectorThreads(Path self) {
    this.self = self;
  }

  @Override
  public synchronized MetricSnapshots collect() {
    try {
      findThreads();
      long nanos = 0;
      for (Path thread : threads) {
        String schedstat = Files.readString(thread.resolve("schedstat"), UTF_8);
        nanos += Long.parseLong(schedstat, 0, schedstat.indexOf(' '), 10);
      }
      return threads.isEmpty() ? MetricSnapshots.of() : told(nanos / NANOS_PER_SECOND);
    } catch (IOException | NumberFormatException e) {
      return MetricSnapshots.of();
    }
  }

  /**
   * Collectors start threads when they first need them. To look at all threads costs time by their
   * number (5,000 in a large pool), so this looks again only where their number has changed, and
   * now and then: one may have ended as another began.
   */
  private void findThreads() throws IOException {
    String count = threadCount();
    if (count.equals(threadCount) && --scrapesLeft > 0) {
      return;
    }
    List<Path> found = new ArrayList<>();
    try (DirectoryStream<Path> all = Files.newDirectoryStream(self.resolve("task"))) {
      for (Path thread : all) {
        if (collects(thread)) {
          found.add(thread);
        }
      }
    }
    threads = List.copyOf(found);
    threadCount = count;
    scrapesLeft = SCRAPES;
  }

  /** Of status: {@code Threads: 37}. */
  private String threadCount() throws IOException {
    for (String line : Files.readAllLines(self.resolve("status"), UTF_8)) {
      if (line.startsWith("Threads:")) {
        return line;
      }
    }
    throw new IOException("no Threads in " + self.resolve("status"));
  }

  private static boolean collects(Path thread) {
    try {
      String name = Files.readString(thread.resolve("comm"), UTF_8);
      return NAMES.stream().anyMatch(name::startsWith);
    } catch (IOException e) {
      // It has ended since.
      return false;
    }
  }

  private static MetricSnapshots told(double seconds) {
    return MetricSnapshots.of(
        CounterSnapshot.builder()
            .name("lab_gc_cpu_seconds")
            .help("CPU time of the garbage collector's threads.")
            .dataPoint(CounterDataPointSnapshot.builder().value(seconds).build())
            .build());
  }
}
