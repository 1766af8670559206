package lab.work;

import java.util.concurrent.atomic.AtomicInteger;

/** How many requests the server has taken on and not yet answered, and their bound. Any thread. */
public final class Admission {
  private final AtomicInteger admitted = new AtomicInteger();
  private volatile int bound;

  /** With a bound on requests at a time, 0 = any number. */
  public Admission(int bound) {
    this.bound = bound;
  }

  /** Takes one more on, to be followed by {@link #leave}; false when there is no place for it. */
  public boolean tryEnter() {
    return tryEnter(bound);
  }

  /** As the other one, with a bound of the caller's, 0 = any number. */
  public boolean tryEnter(int most) {
    if (most == 0) {
      admitted.incrementAndGet();
      return true;
    }
    // Never above the bound, not even for a moment: on another loop that would refuse one for which
    // there is a place.
    for (int now = admitted.get(); now < most; now = admitted.get()) {
      if (admitted.compareAndSet(now, now + 1)) {
        return true;
      }
    }
    return false;
  }

  public void leave() {
    admitted.decrementAndGet();
  }

  public int admitted() {
    return admitted.get();
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
