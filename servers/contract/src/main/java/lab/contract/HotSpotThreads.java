package lab.contract;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.prometheus.metrics.model.registry.MultiCollector;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.CounterSnapshot.CounterDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The CPU time of HotSpot's own threads, as the kernel counts it (proc(5), {@code
 * /proc/self/task/<id>/schedstat}): of the garbage collector's, and of the JIT compiler's. Read
 * once per scrape.
 *
 * <p>The JDK tells how long collections and compilations last, which is no measure of what they
 * cost: on a full machine a collector and a compiler wait for CPUs too. A compiler was seen to take
 * an eighth of the time it lasted. The CPU time of the collector is told by the JDK from version 26
 * on (MemoryMXBean.getTotalGcCpuTime); in 25 it is an internal counter, {@code
 * sun.threads.total_gc_cpu_time}, which is the sum of the same threads. That of the compiler it
 * does not tell.
 */
final class HotSpotThreads implements MultiCollector {
  /**
   * What a thread is there for, with how the names of such threads begin (the kernel's 15 bytes).
   */
  private enum Work {
    /**
     * Threads that do nothing but collect (G1, Parallel, ZGC, Shenandoah). The VM thread leads
     * collections, and is the serial collector; what else it does is little.
     */
    COLLECTS(
        "lab_gc_cpu_seconds",
        "CPU time of the garbage collector's threads.",
        "GC Thread#|G1 |ZWorker|ZDriver|Shenandoah|VM Thread"),
    COMPILES(
        "lab_jit_cpu_seconds", "CPU time of the JIT compiler's threads.", "C[12] CompilerThre");

    private final String metric;
    private final String help;
    private final Pattern name;

    Work(String metric, String help, String name) {
      this.metric = metric;
      this.help = help;
      this.name = Pattern.compile(name);
    }
  }

  /** It looks at all threads again after so many scrapes, even if their number is the same. */
  private static final int SCRAPES = 10;

  private static final double NANOS_PER_SECOND = 1e9;

  private final Path self;

  /** The nanoseconds of each thread when it was last read, by its directory. */
  private final Map<Work, Map<Path, Long>> threads = new EnumMap<>(Work.class);

  /** Those of threads that have ended: a compiler ends threads that have nothing to do. */
  private final Map<Work, Long> ended = new EnumMap<>(Work.class);

  private String threadCount = "";
  private int scrapesLeft;

  /**
   * @param self normally {@code /proc/self}
   */
  HotSpotThreads(Path self) {
    this.self = self;
  }

  @Override
  public synchronized MetricSnapshots collect() {
    try {
      findThreads();
      List<MetricSnapshot> told = new ArrayList<>();
      for (Work work : Work.values()) {
        Map<Path, Long> known = threads.getOrDefault(work, Map.of());
        read(work, known);
        if (!known.isEmpty() || ended.containsKey(work)) {
          long nanos = ended.getOrDefault(work, 0L);
          for (long one : known.values()) {
            nanos += one;
          }
          told.add(told(work, nanos / NANOS_PER_SECOND));
        }
      }
      return new MetricSnapshots(told);
    } catch (IOException | NumberFormatException e) {
      return MetricSnapshots.of();
    }
  }

  /** Reads all of these threads again. What one had that has ended since is kept. */
  private void read(Work work, Map<Path, Long> known) throws IOException {
    for (Iterator<Map.Entry<Path, Long>> each = known.entrySet().iterator(); each.hasNext(); ) {
      Map.Entry<Path, Long> one = each.next();
      try {
        String schedstat = Files.readString(one.getKey().resolve("schedstat"), UTF_8);
        one.setValue(Long.parseLong(schedstat, 0, schedstat.indexOf(' '), 10));
      } catch (IOException e) {
        if (Files.exists(one.getKey())) {
          throw e;
        }
        ended.merge(work, one.getValue(), Long::sum);
        each.remove();
      }
    }
  }

  /**
   * HotSpot starts threads when it first needs them. To look at all threads costs time by their
   * number (5,000 in a large pool), so this looks again only where their number has changed, and
   * now and then: one may have ended as another began.
   */
  private void findThreads() throws IOException {
    String count = threadCount();
    if (count.equals(threadCount) && --scrapesLeft > 0) {
      return;
    }
    try (DirectoryStream<Path> all = Files.newDirectoryStream(self.resolve("task"))) {
      for (Path thread : all) {
        Work work = workOf(thread);
        if (work != null) {
          threads.computeIfAbsent(work, any -> new HashMap<>()).putIfAbsent(thread, 0L);
        }
      }
    }
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

  /** What HotSpot has this thread for; null for every other thread. */
  private static @Nullable Work workOf(Path thread) {
    try {
      String name = Files.readString(thread.resolve("comm"), UTF_8);
      for (Work work : Work.values()) {
        if (work.name.matcher(name).lookingAt()) {
          return work;
        }
      }
    } catch (IOException e) {
      // It has ended since.
    }
    return null;
  }

  private static CounterSnapshot told(Work work, double seconds) {
    return CounterSnapshot.builder()
        .name(work.metric)
        .help(work.help)
        .dataPoint(CounterDataPointSnapshot.builder().value(seconds).build())
        .build();
  }
}
