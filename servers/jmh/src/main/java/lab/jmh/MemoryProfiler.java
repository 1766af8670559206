package lab.jmh;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.function.IntSupplier;
import org.openjdk.jmh.infra.BenchmarkParams;
import org.openjdk.jmh.infra.IterationParams;
import org.openjdk.jmh.profile.InternalProfiler;
import org.openjdk.jmh.results.AggregationPolicy;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.ScalarResult;

/**
 * What sleeping tasks keep in memory, in three lines of JMH's table, all above what the JVM had
 * just before the tasks were handed over:
 *
 * <ul>
 *   <li>{@code heap.live}: the heap in use after a full collection, while the tasks sleep
 *   <li>{@code asleep}: how many still slept after that collection; divide by it
 *   <li>{@code resident.peak}: the process' peak (VmHWM) above what was resident before
 *       (smaps_rollup)
 * </ul>
 *
 * <p>The collection takes part of the tasks' time, so a JVM with this profiler measures no time.
 */
public final class MemoryProfiler implements InternalProfiler {
  private static final double MIB = 1024 * 1024;

  /** JMH makes the profiler of a forked JVM once; a benchmark's task finds it here. */
  private static volatile boolean on;

  private static volatile long liveBytes;
  private static volatile int asleep;

  private long residentBefore;
  private long liveBefore;

  /** Called by the task after which none more can sleep. Does nothing without the profiler. */
  static void whileAsleep(IntSupplier sleeping) {
    if (on) {
      liveBytes = live();
      asleep = sleeping.getAsInt();
    }
  }

  @Override
  public String getDescription() {
    return "live heap while tasks sleep, and peak resident memory";
  }

  @Override
  public void beforeIteration(BenchmarkParams benchmark, IterationParams iteration) {
    on = true;
    liveBefore = live();
    residentBefore = kilobytes("smaps_rollup", "Rss:") * 1024;
  }

  @Override
  public Collection<? extends Result<?>> afterIteration(
      BenchmarkParams benchmark, IterationParams iteration, IterationResult result) {
    long peak = kilobytes("status", "VmHWM:") * 1024;
    return List.of(
        scalar("heap.live", (liveBytes - liveBefore) / MIB, "MiB"),
        scalar("asleep", asleep, "tasks"),
        scalar("resident.peak", (peak - residentBefore) / MIB, "MiB"));
  }

  private static ScalarResult scalar(String name, double value, String unit) {
    return new ScalarResult(name, value, unit, AggregationPolicy.AVG);
  }

  private static long live() {
    System.gc();
    return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
  }

  private static long kilobytes(String file, String field) {
    try {
      for (String line : Files.readAllLines(Path.of("/proc/self", file))) {
        if (line.startsWith(field) && line.endsWith("kB")) {
          return Long.parseLong(line.substring(field.length(), line.length() - 2).strip());
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    throw new IllegalStateException("/proc/self/" + file + " has no line " + field);
  }
}
