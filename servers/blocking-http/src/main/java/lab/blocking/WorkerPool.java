package lab.blocking;

import java.util.concurrent.ThreadPoolExecutor;
import lab.contract.ModelContext;
import lab.contract.Settings;
import lab.contract.WorkerPoolMXBean;

/** What can be seen of a pool of worker threads, and turned, from outside. */
final class WorkerPool implements WorkerPoolMXBean {
  private final ThreadPoolExecutor pool;
  private volatile int queueBound;

  WorkerPool(ThreadPoolExecutor pool, int queueBound) {
    this.pool = pool;
    this.queueBound = queueBound;
    // A thread's start is no part of the first requests.
    var _ = pool.prestartAllCoreThreads();
  }

  void publish(ModelContext context) {
    context.mbeans().register("WorkerPool", this);
    context.knobs().add(Settings.POOL_SIZE, this::getSize, this::resize);
    context.knobs().add(Settings.QUEUE_BOUND, this::getQueueBound, bound -> queueBound = bound);
  }

  /** Most requests in the pool and its queue together. */
  int limit() {
    int bound = queueBound;
    return bound == 0 ? Integer.MAX_VALUE : pool.getMaximumPoolSize() + bound;
  }

  private void resize(int size) {
    // Core must never exceed maximum on the way.
    if (size > pool.getMaximumPoolSize()) {
      pool.setMaximumPoolSize(size);
      pool.setCorePoolSize(size);
      var _ = pool.prestartAllCoreThreads();
    } else {
      pool.setCorePoolSize(size);
      pool.setMaximumPoolSize(size);
    }
  }

  @Override
  public int getSize() {
    return pool.getMaximumPoolSize();
  }

  @Override
  public int getActive() {
    return pool.getActiveCount();
  }

  @Override
  public int getQueueDepth() {
    return pool.getQueue().size();
  }

  @Override
  public int getQueueBound() {
    return queueBound;
  }
}
