package lab.front;

import java.util.AbstractQueue;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * An unbounded queue whose elements go in order, and to the thread that began to wait last: its
 * stack and caches are the warmest. A {@link java.util.concurrent.LinkedBlockingQueue} wakes the
 * thread that has waited longest, so a pool with more threads than work uses all of them in turn.
 */
final class LifoHandOver extends AbstractQueue<Runnable> implements BlockingQueue<Runnable> {
  private static final class Waiter {
    private final Thread thread = Thread.currentThread();

    /** Set once, under the lock. */
    private volatile @Nullable Runnable given;
  }

  private final ReentrantLock lock = new ReentrantLock();

  /** Empty while any thread waits. */
  private final ArrayDeque<Runnable> elements = new ArrayDeque<>();

  /** Last one first. */
  private final ArrayDeque<Waiter> waiters = new ArrayDeque<>();

  @Override
  public boolean offer(Runnable element) {
    Waiter last;
    lock.lock();
    try {
      last = waiters.pollFirst();
      if (last == null) {
        elements.addLast(element);
      } else {
        last.given = element;
      }
    } finally {
      lock.unlock();
    }
    if (last != null) {
      LockSupport.unpark(last.thread);
    }
    return true;
  }

  @Override
  public Runnable take() throws InterruptedException {
    while (true) {
      Runnable taken = poll(Long.MAX_VALUE, TimeUnit.NANOSECONDS);
      if (taken != null) {
        return taken;
      }
    }
  }

  @Override
  public @Nullable Runnable poll(long timeout, TimeUnit unit) throws InterruptedException {
    Waiter waiter = new Waiter();
    lock.lockInterruptibly();
    try {
      Runnable first = elements.pollFirst();
      if (first != null) {
        return first;
      }
      waiters.addFirst(waiter);
    } finally {
      lock.unlock();
    }
    long nanos = unit.toNanos(timeout);
    long begun = System.nanoTime();
    boolean interrupted = false;
    while (waiter.given == null && !interrupted) {
      long left = nanos - (System.nanoTime() - begun);
      if (left <= 0) {
        break;
      }
      LockSupport.parkNanos(this, left);
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

  @Override
  public @Nullable Runnable poll() {
    lock.lock();
    try {
      return elements.pollFirst();
    } finally {
      lock.unlock();
    }
  }

  @Override
  public @Nullable Runnable peek() {
    lock.lock();
    try {
      return elements.peekFirst();
    } finally {
      lock.unlock();
    }
  }

  @Override
  public int size() {
    lock.lock();
    try {
      return elements.size();
    } finally {
      lock.unlock();
    }
  }

  @Override
  public boolean remove(@Nullable Object element) {
    lock.lock();
    try {
      return elements.remove(element);
    } finally {
      lock.unlock();
    }
  }

  /** Of a copy. */
  @Override
  public Iterator<Runnable> iterator() {
    lock.lock();
    try {
      return new ArrayList<>(elements).iterator();
    } finally {
      lock.unlock();
    }
  }

  @Override
  public int drainTo(Collection<? super Runnable> to) {
    return drainTo(to, Integer.MAX_VALUE);
  }

  @Override
  public int drainTo(Collection<? super Runnable> to, int most) {
    lock.lock();
    try {
      int count = Math.min(most, elements.size());
      for (int i = 0; i < count; i++) {
        to.add(elements.removeFirst());
      }
      return count;
    } finally {
      lock.unlock();
    }
  }

  @Override
  public void put(Runnable element) {
    offer(element);
  }

  @Override
  public boolean offer(Runnable element, long timeout, TimeUnit unit) {
    return offer(element);
  }

  @Override
  public int remainingCapacity() {
    return Integer.MAX_VALUE;
  }
}
