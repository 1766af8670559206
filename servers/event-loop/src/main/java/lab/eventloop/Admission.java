package lab.eventloop;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * How many requests the server has taken on and not yet answered, over all loops, and the bound on
 * them. An event loop has no workers for which requests queue, so this is what it can bound. Safe
 * for any number of threads.
 */
final class Admission {
  private final AtomicInteger admitted = new AtomicInteger();
  private volatile int bound;

  /**
   * @param bound most requests at a time, 0 = any number
   */
  Admission(int bound) {
    this.bound = bound;
  }

  /** Takes one more on, to be followed by {@link #leave}; false when there is no place for it. */
  boolean tryEnter() {
    int most = bound;
    if (admitted.incrementAndGet() <= most || most == 0) {
      return true;
    }
    leave();
    return false;
  }

  void leave() {
    admitted.decrementAndGet();
  }

  int bound() {
    return bound;
  }

  void setBound(int most) {
    bound = most;
  }
}
