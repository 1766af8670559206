package lab.contract.nonblocking;

import java.util.ArrayDeque;
import lab.contract.DownstreamConnectionsMXBean;
import org.jspecify.annotations.Nullable;

/**
 * How many downstream calls there may be at a time, over all loops. First come, first served; live
 * resizable. Any thread; no call blocks for longer than it takes to count.
 */
public final class ConnectionCap implements DownstreamConnectionsMXBean {
  /** A call that wants a place. */
  public abstract static class Waiter {
    private boolean waiting;

    /** It has its place now. Called once, on any thread. */
    protected abstract void granted();
  }

  /** Longest waiting first; those that have given up stay until they come first. */
  private final ArrayDeque<Waiter> queue = new ArrayDeque<>();

  private int pending;
  private int leased;
  private int cap;

  public ConnectionCap(int cap) {
    this.cap = cap;
  }

  /** Takes a place and returns true, or waits for one and is told. */
  public synchronized boolean enter(Waiter waiter) {
    if (leased < cap) {
      leased++;
      return true;
    }
    waiter.waiting = true;
    queue.add(waiter);
    pending++;
    return false;
  }

  /** Waits no longer; false when the place has been granted meanwhile: then it is to be left. */
  public synchronized boolean giveUp(Waiter waiter) {
    if (!waiter.waiting) {
      return false;
    }
    waiter.waiting = false;
    pending--;
    // Timeouts are equal, so it is the first as a rule.
    while (!queue.isEmpty() && !queue.getFirst().waiting) {
      queue.removeFirst();
    }
    return true;
  }

  /** Gives a place back, to the one who has waited longest. */
  public void leave() {
    Waiter next;
    synchronized (this) {
      leased--;
      next = enterNext();
    }
    if (next != null) {
      next.granted();
    }
  }

  /** Calls under way are not broken off: after a reduction, leased may exceed the cap a while. */
  public void resize(int newCap) {
    Waiter next;
    do {
      synchronized (this) {
        cap = newCap;
        next = enterNext();
      }
      if (next != null) {
        next.granted();
      }
    } while (next != null);
  }

  private @Nullable Waiter enterNext() {
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
