package lab.executors;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import lab.contract.BadValueException;
import lab.contract.Json;

/**
 * One measurement, then the JVM ends: {@code Measurement} with the words of a {@link Plan} prints
 * one line of JSON.
 *
 * <p>In order: the executor is opened; the rounds that make a JVM warm run on it, else no task has
 * run before the measured ones; every instrument is read once, so that its classes are there; the
 * heap is collected; <em>before</em> is read; the tasks run; <em>after</em> and the peaks are read
 * while the pool still has its threads. Nothing is collected on purpose between before and after,
 * so what a task leaves behind counts as heap until the collector runs by itself ({@code gc_count}
 * tells).
 */
final class Measurement {
  private static final int EXIT_BAD_WORDS = 2;

  private final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private final List<MemoryPoolMXBean> heapPools =
      ManagementFactory.getMemoryPoolMXBeans().stream()
          .filter(pool -> pool.getType() == MemoryType.HEAP)
          .toList();
  private final ResidentMemory resident;

  Measurement(ResidentMemory resident) {
    this.resident = resident;
  }

  @SuppressWarnings("SystemOut") // Standard output is the result.
  public static void main(String[] args) throws IOException, InterruptedException {
    try {
      Plan plan = Plan.parse(List.of(args));
      System.out.println(Json.write(new Measurement(ResidentMemory.OF_THIS_JVM).measure(plan)));
    } catch (BadValueException e) {
      System.err.println("executors: " + e.getMessage());
      Runtime.getRuntime().exit(EXIT_BAD_WORDS);
    }
  }

  /** Measures, and returns what the line of JSON holds. */
  Map<String, Object> measure(Plan plan) throws IOException, InterruptedException {
    try (ExecutorService executor = plan.executor().open(plan.poolSize())) {
      for (int i = 0; i < plan.rounds(); i++) {
        var _ = new Workload(plan.tasks(), plan.sleep()).run(executor);
      }
      Workload workload = new Workload(plan.tasks(), plan.sleep());
      var _ = read();
      System.gc();
      heapPools.forEach(MemoryPoolMXBean::resetPeakUsage);
      threads.resetPeakThreadCount();
      Reading before = read();
      Workload.Times times = workload.run(executor);
      Reading after = read();
      return result(plan, times, before, after);
    }
  }

  private Map<String, Object> result(
      Plan plan, Workload.Times times, Reading before, Reading after) {
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("start", plan.start().label());
    line.put("purpose", plan.purpose().label());
    line.put("executor", plan.executor().label());
    line.put("tasks", plan.tasks());
    line.put("sleep_ms", plan.sleep().toMillis());
    line.put("pool_size", plan.poolSize());
    line.put("rounds_before", plan.rounds());
    line.put("bound_ms", plan.bound().toMillis());
    line.put("submitted_us", micros(times.submitted()));
    line.put("first_start_us", micros(times.firstStart()));
    line.put("last_start_us", micros(times.lastStart()));
    line.put("first_wake_us", micros(times.firstWake()));
    line.put("last_wake_us", micros(times.lastWake()));
    line.put("elapsed_us", micros(times.elapsed()));
    line.put("heap_before_bytes", before.heapBytes);
    line.put("heap_peak_bytes", after.heapPeakBytes);
    line.put("heap_after_bytes", after.heapBytes);
    line.put("allocated_bytes", after.allocatedBytes - before.allocatedBytes);
    line.put("gc_count", after.gcCount - before.gcCount);
    line.put("resident_before_bytes", before.residentBytes);
    line.put("resident_peak_bytes", after.residentPeakBytes);
    line.put("resident_after_bytes", after.residentBytes);
    line.put("platform_threads_before", before.threads);
    line.put("platform_threads_peak", threads.getPeakThreadCount());
    line.put("cpus", Runtime.getRuntime().availableProcessors());
    line.put("max_heap_bytes", Runtime.getRuntime().maxMemory());
    line.put("jdk", Runtime.version().toString());
    line.put(
        "gc",
        ManagementFactory.getGarbageCollectorMXBeans().stream()
            .map(GarbageCollectorMXBean::getName)
            .toList());
    line.put("jvm_flags", List.copyOf(ManagementFactory.getRuntimeMXBean().getInputArguments()));
    return line;
  }

  private static long micros(Duration time) {
    return time.toNanos() / 1000;
  }

  /**
   * What the instruments say at one moment; the peaks since they were reset, the resident peak
   * since the JVM began.
   *
   * @param heapPeakBytes sum of the peaks of the heap's pools: no less than the heap's own peak,
   *     and equal to it where no collection moved objects between the pools
   * @param allocatedBytes by all threads so far, ended ones too; virtual threads count through
   *     their carriers
   */
  private record Reading(
      long heapBytes,
      long heapPeakBytes,
      long allocatedBytes,
      long gcCount,
      long residentBytes,
      long residentPeakBytes,
      int threads) {}

  private Reading read() throws IOException {
    return new Reading(
        ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed(),
        heapPools.stream().mapToLong(pool -> pool.getPeakUsage().getUsed()).sum(),
        threads.getTotalThreadAllocatedBytes(),
        ManagementFactory.getGarbageCollectorMXBeans().stream()
            .mapToLong(GarbageCollectorMXBean::getCollectionCount)
            .sum(),
        resident.nowBytes(),
        resident.peakBytes(),
        threads.getThreadCount());
  }
}
