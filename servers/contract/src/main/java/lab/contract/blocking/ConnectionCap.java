package lab.contract.blocking;

import static java.util.concurrent.TimeUnit.NANOSECONDS;

import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import lab.contract.DownstreamConnectionsMXBean;

/** How many downstream calls there may be at a time. First come, first served; live resizable. */
final class ConnectionCap implements DownstreamConnectionsMXBean {
  private static final class Permits extends Semaphore {
    private static final long serialVersionUID = 1;

    Permits(int permits) {
      super(permits, true);
    }

    @Override
    public void reducePermits(int reduction) {
      super.reducePermits(reduction);
    }
  }

  private final Permits permits;
  private final AtomicInteger pending = new AtomicInteger();
  private volatile int cap;

  ConnectionCap(int cap) {
    this.cap = cap;
    this.permits = new Permits(cap);
  }

  /** Takes a place, waiting for one if need be; false when the wait was too long. */
  boolean enter(long timeoutNanos) throws InterruptedException {
    if (permits.tryAcquire(0, NANOSECONDS)) {
      return true;
    }
    pending.incrementAndGet();
    try {
      return permits.tryAcquire(timeoutNanos, NANOSECONDS);
    } finally {
      pending.decrementAndGet();
    }
  }

  void leave() {
    permits.release();
  }

  /** Calls under way are not broken off: after a reduction, leased may exceed the cap a while. */
  synchronized void resize(int newCap) {
    int more = newCap - cap;
    cap = newCap;
    if (more > 0) {
      permits.release(more);
    } else {
      permits.reducePermits(-more);
    }
  }

  @Override
  public int getLeased() {
    return Math.max(0, cap - permits.availablePermits());
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
