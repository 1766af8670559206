package lab.reactor;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import lab.observe.SelectorClock;

/** What is measured on a reactor. Written by its thread; counts are read by scrapes. */
public final class Probe {
  private final SelectorClock clock = new SelectorClock(System.nanoTime());
  private final AtomicLong busyNanos = new AtomicLong();
  private final AtomicInteger depth = new AtomicInteger();
  private long askedNanos;
  private boolean hasReturned;

  void asks(long nowNanos) {
    busyNanos.setOpaque(busyNanos.getPlain() + nowNanos - clock.selectedNanos());
    clock.asked(nowNanos);
    askedNanos = nowNanos;
    hasReturned = false;
  }

  void returned() {
    if (!hasReturned) {
      hasReturned = true;
      clock.selected(System.nanoTime());
    }
  }

  /** All that it had is read. If it cannot have waited, asking it was work. */
  void took(int keys, boolean waited) {
    returned();
    clock.took(keys);
    if (!waited) {
      busyNanos.setOpaque(busyNanos.getPlain() + clock.selectedNanos() - askedNanos);
    }
  }

  public void setDepth(int waiting) {
    depth.setOpaque(waiting);
  }

  public long selectedNanos() {
    return clock.selectedNanos();
  }

  /** Since when the input of the last selection has been there, about. */
  public long readyNanos() {
    return clock.readyNanos();
  }

  /** The same of input that could not have come before that time. */
  public long readyNanos(long earliestNanos) {
    return clock.readyNanos(earliestNanos);
  }

  public long busyNanos() {
    return busyNanos.get();
  }

  public int depth() {
    return depth.get();
  }
}
