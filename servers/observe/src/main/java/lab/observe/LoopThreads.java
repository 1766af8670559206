package lab.observe;

import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.TreeMap;
import java.util.function.IntSupplier;

/**
 * The event loops of a framework, by the CPU time of their threads. On a full machine that is less
 * than what a loop would say of itself: its waits for a CPU are missing.
 */
public final class LoopThreads {
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  private record LoopThread(String name, long id) implements LoopMetrics.Observed {
    @Override
    public long busyNanos() {
      return Math.max(0, THREADS.getThreadCpuTime(id));
    }

    @Override
    public OptionalInt queueDepth() {
      return OptionalInt.empty();
    }
  }

  private final String prefix;
  private final int most;
  private List<LoopThread> found = List.of();
  private boolean complete;

  private LoopThreads(String prefix, int most) {
    this.prefix = prefix;
    this.most = most;
  }

  /** Adds the metrics of so many loops, whose threads have this prefix and may come later. */
  public static void register(
      PrometheusRegistry registry, String prefix, int loops, IntSupplier openConnections) {
    LoopThreads threads = new LoopThreads(prefix, loops);
    LoopMetrics.register(registry, threads::all, openConnections);
  }

  /**
   * One of each name: threads of a server that ends may still be there as the next thread starts.
   */
  private synchronized List<LoopThread> all() {
    if (!complete) {
      Map<String, LoopThread> newest = new TreeMap<>();
      int there = 0;
      for (ThreadInfo each : THREADS.getThreadInfo(THREADS.getAllThreadIds())) {
        if (each != null && each.getThreadName().startsWith(prefix)) {
          there++;
          LoopThread thread = new LoopThread(each.getThreadName(), each.getThreadId());
          newest.merge(thread.name(), thread, (a, b) -> a.id() > b.id() ? a : b);
        }
      }
      found = List.copyOf(newest.values());
      complete = there == found.size() && there >= most;
    }
    return found;
  }
}
