package lab.work.blocking;

import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntConsumer;
import java.util.function.IntSupplier;
import lab.shell.ModelContext;
import lab.spec.Settings;

/** What management threads see of a pool of worker threads, and turn. */
public record WorkerPool(
    IntSupplier size, IntSupplier active, IntSupplier queued, AtomicInteger queueBound)
    implements WorkerPoolMXBean {
  /** Shows the JDK's pool, all of whose threads are started now: no part of the first requests. */
  public static WorkerPool publish(ThreadPoolExecutor pool, ModelContext context) {
    var unused = pool.prestartAllCoreThreads();
    return publish(
        pool::getMaximumPoolSize,
        pool::getActiveCount,
        () -> pool.getQueue().size(),
        size -> resize(pool, size),
        context);
  }

  /** Shows a pool as MXBean {@code WorkerPool}; its size and its queue's bound become knobs. */
  public static WorkerPool publish(
      IntSupplier size,
      IntSupplier active,
      IntSupplier queued,
      IntConsumer resize,
      ModelContext context) {
    AtomicInteger bound = new AtomicInteger(context.settings().queueBound());
    WorkerPool pool = new WorkerPool(size, active, queued, bound);
    context.mbeans().register("WorkerPool", pool);
    context.knobs().add(Settings.POOL_SIZE, size, resize);
    context.knobs().add(Settings.QUEUE_BOUND, bound::get, bound::set);
    return pool;
  }

  /** Most requests in the pool and its queue together, 0 = any number. */
  public int limit() {
    int bound = queueBound.get();
    return bound == 0 ? 0 : getSize() + bound;
  }

  @Override
  public int getSize() {
    return size.getAsInt();
  }

  @Override
  public int getActive() {
    return active.getAsInt();
  }

  @Override
  public int getQueueDepth() {
    return queued.getAsInt();
  }

  @Override
  public int getQueueBound() {
    return queueBound.get();
  }

  private static void resize(ThreadPoolExecutor pool, int size) {
    // Core must never exceed maximum on the way.
    if (size > pool.getMaximumPoolSize()) {
      pool.setMaximumPoolSize(size);
      pool.setCorePoolSize(size);
      var unused = pool.prestartAllCoreThreads();
    } else {
      pool.setCorePoolSize(size);
      pool.setMaximumPoolSize(size);
    }
  }
}
