package lab.contract.serving;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * How many requests the server has taken on and not yet answered, over all loops, and the bound on
 * them. Where no requests queue for workers, this is what can be bound. One that was refused is
 * none of them, however long its client takes to read so. Safe for any number of threads.
 */
public final class Admission {
  private final AtomicInteger admitted = new AtomicInteger();
  private volatile int bound;

  /**
   * @param bound most requests at a time, 0 = any number
   */
  public Admission(int bound) {
    this.bound = bound;
  }

  /** Takes one more on, to be followed by {@link #leave}; false when there is no place for it. */
  public boolean tryEnter() {
    int most = bound;
    if (admitted.incrementAndGet() <= most || most == 0) {
      return true;
    }
    leave();
    return false;
  }

  /** One that was taken on is over. */
  public void leave() {
    admitted.decrementAndGet();
  }

  /** Most requests at a time, 0 = any number. */
  public int bound() {
    return bound;
  }

  /** Bounds those that come from now on. */
  public void setBound(int most) {
    bound = most;
  }
}
