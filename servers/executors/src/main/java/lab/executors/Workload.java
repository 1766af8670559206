package lab.executors;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The measured code, for one round: hands over tasks that only sleep, and waits until the last is
 * done. Two readings of the clock and two counters are all that a task does besides. Made before
 * what is measured, so that its arrays are no part of it.
 */
final class Workload {
  private final Duration sleep;
  private final CountDownLatch left;
  private final long[] startedNs;
  private final long[] wokeNs;
  private final AtomicInteger started = new AtomicInteger();
  private final AtomicInteger woke = new AtomicInteger();

  Workload(int tasks, Duration sleep) {
    this.sleep = sleep;
    left = new CountDownLatch(tasks);
    startedNs = new long[tasks];
    wokeNs = new long[tasks];
  }

  /**
   * When what happened, each counted from just before the first hand-over.
   *
   * @param submitted the last task was handed over
   * @param elapsed the submitting thread saw the last task done
   */
  record Times(
      Duration submitted,
      Duration firstStart,
      Duration lastStart,
      Duration firstWake,
      Duration lastWake,
      Duration elapsed) {}

  /**
   * Runs the tasks, once. Blocks the calling thread.
   *
   * @throws IllegalStateException when a task did not sleep to its end
   */
  Times run(ExecutorService executor) throws InterruptedException {
    Runnable task = this::sleep;
    long startNs = System.nanoTime();
    for (int i = 0; i < startedNs.length; i++) {
      executor.execute(task);
    }
    long submittedNs = System.nanoTime();
    left.await();
    long endNs = System.nanoTime();
    if (woke.get() < wokeNs.length) {
      throw new IllegalStateException(wokeNs.length - woke.get() + " tasks were interrupted");
    }
    return new Times(
        Duration.ofNanos(submittedNs - startNs),
        first(startedNs, startNs),
        last(startedNs, startNs),
        first(wokeNs, startNs),
        last(wokeNs, startNs),
        Duration.ofNanos(endNs - startNs));
  }

  // Two that count at once may have taken their places in the other order. Sorting a million takes
  // heap, and what is allocated is about to be read.

  private static Duration first(long[] readings, long startNs) {
    long first = Long.MAX_VALUE;
    for (long each : readings) {
      first = Math.min(first, each - startNs);
    }
    return Duration.ofNanos(first);
  }

  private static Duration last(long[] readings, long startNs) {
    long last = 0;
    for (long each : readings) {
      last = Math.max(last, each - startNs);
    }
    return Duration.ofNanos(last);
  }

  private void sleep() {
    try {
      startedNs[started.getAndIncrement()] = System.nanoTime();
      Thread.sleep(sleep);
      wokeNs[woke.getAndIncrement()] = System.nanoTime();
    } catch (InterruptedException e) {
      // The counters tell.
    } finally {
      left.countDown();
    }
  }
}
