package lab.executors;

import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** What is compared. The kinds differ in one line, as the servers of the same names do. */
enum ExecutorKind implements Word {
  FIXED_POOL("fixed-pool") {
    @Override
    ExecutorService open(int poolSize) {
      return Executors.newFixedThreadPool(poolSize);
    }

    @Override
    Duration bound(int tasks, Duration sleep, int poolSize) {
      return sleep.multipliedBy(Math.ceilDiv(tasks, poolSize));
    }
  },

  VIRTUAL_THREADS("virtual-threads") {
    @Override
    ExecutorService open(int poolSize) {
      return Executors.newVirtualThreadPerTaskExecutor();
    }

    @Override
    Duration bound(int tasks, Duration sleep, int poolSize) {
      return sleep;
    }
  };

  private final String label;

  ExecutorKind(String label) {
    this.label = label;
  }

  /** Opens the executor; none of its threads is started yet. */
  abstract ExecutorService open(int poolSize);

  /** Returns the least time that the tasks can take, were everything but sleeping free. */
  abstract Duration bound(int tasks, Duration sleep, int poolSize);

  @Override
  public String label() {
    return label;
  }
}
