package lab.work;

import static java.util.concurrent.TimeUnit.NANOSECONDS;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;

/**
 * The number of downstream calls that may run at a time, over all threads and loops. First come,
 * first served; live resizable. Any thread; only {@link #enterWithin} blocks.
 */
public final class ConnectionCap implements DownstreamConnectionsMXBean {
  /** A call that waits for a place without blocking a thread. */
  public abstract static class Waiter {
    private boolean waiting;

    /** The call has its place now. Called once, on any thread. */
    protected abstract void granted();
  }

  /** A call that waits for a place and blocks its thread meanwhile. */
  private static final class WaitingThread extends Waiter {
    private final CountDownLatch place = new CountDownLatch(1);

    @Override
    protected void granted() {
      place.countDown();
    }
  }

  /** Longest waiting first. Waiters that gave up stay in it until they are the first. */
  private final ArrayDeque<Waiter> queue = new ArrayDeque<>();

  private int pending;
  private int leased;
  private int cap;

  public ConnectionCap(int cap) {
    this.cap = cap;
  }

  /** Takes a place if one is free. */
  public synchronized boolean tryEnter() {
    // While calls wait no place is free, so nobody is overtaken here.
    if (leased < cap) {
      leased++;
      return true;
    }
    return false;
  }

  /** Takes a place and returns true, or returns false and tells the waiter when it has one. */
  public synchronized boolean enter(Waiter waiter) {
    if (tryEnter()) {
      return true;
    }
    waiter.waiting = true;
    queue.add(waiter);
    pending++;
    return false;
  }

  /** Takes a place, blocking the thread until one is free; false when that takes too long. */
  public boolean enterWithin(long timeoutNanos) throws InterruptedException {
    if (tryEnter()) {
      return true;
    }
    WaitingThread waiter = new WaitingThread();
    if (enter(waiter)) {
      return true;
    }
    boolean inTime = false;
    try {
      inTime = waiter.place.await(timeoutNanos, NANOSECONDS);
      return inTime;
    } finally {
      if (!inTime && !giveUp(waiter)) {
        leave();
      }
    }
  }

  /** Waits no longer. False when the place has been granted meanwhile: then it must be left. */
  public synchronized boolean giveUp(Waiter waiter) {
    if (!waiter.waiting) {
      return false;
    }
    waiter.waiting = false;
    pending--;
    // Timeouts are equal, so as a rule it is the first one.
    while (!queue.isEmpty() && !queue.getFirst().waiting) {
      queue.removeFirst();
    }
    return true;
  }

  /** Gives a place back. The call that has waited longest gets it. */
  public void leave() {
    Waiter next;
    synchronized (this) {
      leased--;
      next = admitNext();
    }
    if (next != null) {
      next.granted();
    }
  }

  /** Calls under way are not broken off: after a reduction, leased may exceed the cap a while. */
  void resize(int newCap) {
    List<Waiter> admitted = new ArrayList<>();
    synchronized (this) {
      cap = newCap;
      for (Waiter next = admitNext(); next != null; next = admitNext()) {
        admitted.add(next);
      }
    }
    admitted.forEach(Waiter::granted);
  }

  private @Nullable Waiter admitNext() {
    while (leased < cap) {
      Waiter next = queue.poll();
      if (next == null) {
        return null;
      }
      if (next.waiting) {
        next.waiting = false;
        pending--;
        leased++;
        return next;
      }
    }
    return null;
  }

  @Override
  public synchronized int getLeased() {
    return leased;
  }

  @Override
  public synchronized int getPending() {
    return pending;
  }

  @Override
  public synchronized int getCap() {
    return cap;
  }
}
