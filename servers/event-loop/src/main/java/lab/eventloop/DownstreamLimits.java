package lab.eventloop;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import lab.contract.DownstreamConnectionsMXBean;

/**
 * What the loops' downstream pools share: the cap on calls at a time, and the timeout. Safe for any
 * number of threads. A place that comes free goes to the loop that freed it while calls wait there;
 * else every loop with waiting calls is told, so that none waits beside a free place.
 */
final class DownstreamLimits implements DownstreamConnectionsMXBean {
  private final AtomicInteger leased = new AtomicInteger();
  private final AtomicInteger pending = new AtomicInteger();
  private final List<Runnable> whenFreed = new ArrayList<>();
  private volatile int cap;
  private volatile int timeoutMs;

  DownstreamLimits(int cap, int timeoutMs) {
    this.cap = cap;
    this.timeoutMs = timeoutMs;
  }

  /**
   * Adds a pool, before there are calls.
   *
   * @param freed told that a place may be free; called from any thread, must not block
   */
  void join(Runnable freed) {
    whenFreed.add(freed);
  }

  /** Takes a place if there is one. */
  boolean tryEnter() {
    int now = leased.get();
    while (now < cap) {
      if (leased.compareAndSet(now, now + 1)) {
        return true;
      }
      now = leased.get();
    }
    return false;
  }

  void leave() {
    leased.decrementAndGet();
  }

  /** Sees to it that a free place is taken, to be called after leaving one. */
  void tellWaiting() {
    if (pending.get() > 0 && leased.get() < cap) {
      whenFreed.forEach(Runnable::run);
    }
  }

  void pendingChanged(int by) {
    pending.addAndGet(by);
  }

  /** Calls under way are not broken off: after a reduction, leased may exceed the cap a while. */
  void resize(int newCap) {
    cap = newCap;
    tellWaiting();
  }

  int timeoutMs() {
    return timeoutMs;
  }

  void setTimeoutMs(int ms) {
    timeoutMs = ms;
  }

  @Override
  public int getLeased() {
    return leased.get();
  }

  @Override
  public int getPending() {
    return pending.get();
  }

  @Override
  public int getCap() {
    return cap;
  }
}
