package lab.fixedpool;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * An unbounded queue whose elements go in order, and to the thread that began to wait last: its
 * stack and caches are the warmest. A {@link LinkedBlockingQueue} wakes the thread that has waited
 * longest, so a pool with more threads than work uses all of them in turn.
 *
 * <p>The waiting threads are a stack without a lock (Treiber, 1986). With one lock for all of them
 * a thread that loses its CPU while it holds the lock would stop the front.
 */
final class LifoHandOver extends LinkedBlockingQueue<Runnable> {
  private static final long serialVersionUID = 1;

  /** A thread that waits, until it is given something. */
  private static final class Waiter extends AtomicReference<@Nullable Runnable> {
    private static final long serialVersionUID = 1;
    private final transient Thread thread = Thread.currentThread();
    private transient @Nullable Waiter below;
  }

  private final transient AtomicReference<@Nullable Waiter> top = new AtomicReference<>();

  @Override
  public boolean offer(Runnable element) {
    Runnable next = element;
    while (next != null) {
      Waiter last = pop();
      if (last == null) {
        boolean unused = super.offer(next);
        // Who began to wait in between has not seen it, or this sees who waits.
        next = top.get() == null ? null : poll();
      } else if (!last.thread.isInterrupted() && last.compareAndSet(null, next)) {
        // An interrupted thread gives up, such as those of a pool that has shrunk.
        LockSupport.unpark(last.thread);
        next = null;
      }
    }
    return true;
  }

  @Override
  public void put(Runnable element) {
    var unused = offer(element);
  }

  @Override
  public boolean offer(Runnable element, long timeout, TimeUnit unit) {
    return offer(element);
  }

  @Override
  public Runnable take() throws InterruptedException {
    while (true) {
      Runnable taken = take(0, false);
      if (taken != null) {
        return taken;
      }
    }
  }

  @Override
  public @Nullable Runnable poll(long timeout, TimeUnit unit) throws InterruptedException {
    return take(unit.toNanos(timeout), true);
  }

  private @Nullable Runnable take(long nanos, boolean isTimed) throws InterruptedException {
    Runnable first = poll();
    if (first != null) {
      return first;
    }
    Waiter waiter = new Waiter();
    push(waiter);
    Runnable missed = poll();
    if (missed != null) {
      if (waiter.compareAndSet(null, LifoHandOver::nothing)) {
        return missed;
      }
      // Something was given meanwhile. Each goes to a thread; here alone they may change places.
      put(missed);
      return waiter.get();
    }
    await(waiter, nanos, isTimed);
    if (!waiter.compareAndSet(null, LifoHandOver::nothing)) {
      // What is given in the moment in which its thread gives up is not lost.
      return waiter.get();
    }
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
    return null;
  }

  /**
   * Returns when something is given, when the time is over, or when the thread is interrupted, and
   * leaves it so. Without a time limit it parks without one: the kernel then keeps no timer for it.
   */
  private void await(Waiter waiter, long nanos, boolean isTimed) {
    long begun = isTimed ? System.nanoTime() : 0;
    while (waiter.get() == null) {
      if (Thread.currentThread().isInterrupted()) {
        return;
      }
      if (isTimed) {
        long left = nanos - (System.nanoTime() - begun);
        if (left <= 0) {
          return;
        }
        LockSupport.parkNanos(this, left);
      } else {
        LockSupport.park(this);
      }
    }
  }

  private void push(Waiter waiter) {
    Waiter below;
    do {
      below = top.get();
      waiter.below = below;
    } while (!top.compareAndSet(below, waiter));
  }

  /** The one that began to wait last, which may have given up; null if none waits. */
  private @Nullable Waiter pop() {
    Waiter last;
    do {
      last = top.get();
    } while (last != null && !top.compareAndSet(last, last.below));
    return last;
  }

  /** Given to a waiter that gives up. */
  private static void nothing() {}
}
