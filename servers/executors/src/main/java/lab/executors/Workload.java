package lab.executors;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.atomic.AtomicInteger;

/** The measured code: hands over tasks that only sleep, and waits until the last is done. */
final class Workload {
  private Workload() {}

  /**
   * Runs the tasks. Blocks the calling thread.
   *
   * @return from just before the first hand-over until this thread has seen the last task done
   * @throws IllegalStateException when a task did not sleep to its end
   */
  static Duration run(ExecutorService executor, int tasks, Duration sleep)
      throws InterruptedException {
    CountDownLatch left = new CountDownLatch(tasks);
    AtomicInteger broken = new AtomicInteger();
    Runnable task =
        () -> {
          try {
            Thread.sleep(sleep);
          } catch (InterruptedException e) {
            broken.incrementAndGet();
          } finally {
            left.countDown();
          }
        };
    long startNs = System.nanoTime();
    for (int i = 0; i < tasks; i++) {
      executor.execute(task);
    }
    left.await();
    Duration elapsed = Duration.ofNanos(System.nanoTime() - startNs);
    if (broken.get() > 0) {
      throw new IllegalStateException(broken + " tasks were interrupted");
    }
    return elapsed;
  }
}
