package lab.fixedpool;

import java.util.ArrayDeque;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * An unbounded queue whose elements go in order, and to the thread that began to wait last: its
 * stack and caches are the warmest. A {@link LinkedBlockingQueue} wakes the thread that has waited
 * longest, so a pool with more threads than work uses all of them in turn. This one is empty while
 * any thread waits.
 */
final class LifoHandOver extends LinkedBlockingQueue<Runnable> {
  private static final long serialVersionUID = 1;

  private static final class Waiter {
    private final Thread thread = Thread.currentThread();

    /** Set once, under the lock. */
    private volatile @Nullable Runnable given;
  }

  private final transient ReentrantLock lock = new ReentrantLock();

  /** Last one first. */
  private final transient ArrayDeque<Waiter> waiters = new ArrayDeque<>();

  @Override
  public boolean offer(Runnable element) {
    Waiter last;
    lock.lock();
    try {
      last = waiters.pollFirst();
      if (last == null) {
        return super.offer(element);
      }
      last.given = element;
    } finally {
      lock.unlock();
    }
    LockSupport.unpark(last.thread);
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

  /** Without a time limit it parks without one: the kernel then keeps no timer for it. */
  private @Nullable Runnable take(long nanos, boolean isTimed) throws InterruptedException {
    Waiter waiter = new Waiter();
    lock.lockInterruptibly();
    try {
      Runnable first = super.poll();
      if (first != null) {
        return first;
      }
      waiters.addFirst(waiter);
    } finally {
      lock.unlock();
    }
    long begun = isTimed ? System.nanoTime() : 0;
    boolean interrupted = false;
    while (waiter.given == null && !interrupted) {
      if (isTimed) {
        long left = nanos - (System.nanoTime() - begun);
        if (left <= 0) {
          break;
        }
        LockSupport.parkNanos(this, left);
      } else {
        LockSupport.park(this);
      }
      interrupted = Thread.interrupted();
    }
    return given(waiter, interrupted);
  }

  /** What is given in the moment in which its thread gives up is not lost. */
  private @Nullable Runnable given(Waiter waiter, boolean interrupted) throws InterruptedException {
    Runnable given = waiter.given;
    if (given == null) {
      lock.lock();
      try {
        given = waiter.given;
        if (given == null) {
          waiters.remove(waiter);
        }
      } finally {
        lock.unlock();
      }
    }
    if (interrupted) {
      if (given == null) {
        throw new InterruptedException();
      }
      Thread.currentThread().interrupt();
    }
    return given;
  }
}
