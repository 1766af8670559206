package lab.work.blocking;

import java.util.concurrent.ThreadPoolExecutor;
import lab.shell.ModelContext;
import lab.spec.Settings;

/** What can be seen of a pool of worker threads, and turned, from outside. */
public final class WorkerPool implements WorkerPoolMXBean {
  /** The pool's threads, of whatever class. Asked and told from management threads. */
  public interface Threads {
    /** Most threads there may be. */
    int size();

    /** Changes that; takes effect on the next requests. */
    void resize(int size);

    /** Threads with a request at this moment. */
    int active();

    /** Requests waiting for a thread at this moment. */
    int queued();
  }

  private final Threads threads;
  private volatile int queueBound;

  private WorkerPool(Threads threads, int queueBound) {
    this.threads = threads;
    this.queueBound = queueBound;
  }

  /** Shows the JDK's pool, all of whose threads are started now: no part of the first requests. */
  public static WorkerPool publish(ThreadPoolExecutor pool, ModelContext context) {
    return publish(new JdkThreads(pool), context);
  }

  /** Shows a pool as MXBean {@code WorkerPool}, and its size and queue bound as knobs. */
  public static WorkerPool publish(Threads threads, ModelContext context) {
    WorkerPool pool = new WorkerPool(threads, context.settings().queueBound());
    context.mbeans().register("WorkerPool", pool);
    context.knobs().add(Settings.POOL_SIZE, pool::getSize, threads::resize);
    context
        .knobs()
        .add(Settings.QUEUE_BOUND, pool::getQueueBound, bound -> pool.queueBound = bound);
    return pool;
  }

  /** Most requests in the pool and its queue together, 0 = any number. */
  public int limit() {
    int bound = queueBound;
    return bound == 0 ? 0 : threads.size() + bound;
  }

  @Override
  public int getSize() {
    return threads.size();
  }

  @Override
  public int getActive() {
    return threads.active();
  }

  @Override
  public int getQueueDepth() {
    return threads.queued();
  }

  @Override
  public int getQueueBound() {
    return queueBound;
  }

  private record JdkThreads(ThreadPoolExecutor pool) implements Threads {
    JdkThreads {
      var unused = pool.prestartAllCoreThreads();
    }

    @Override
    public int size() {
      return pool.getMaximumPoolSize();
    }

    @Override
    public void resize(int size) {
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

    @Override
    public int active() {
      return pool.getActiveCount();
    }

    @Override
    public int queued() {
      return pool.getQueue().size();
    }
  }
}
