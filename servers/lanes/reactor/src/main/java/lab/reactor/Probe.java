package lab.reactor;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import lab.observe.SelectorClock;

/**
 * All that is measured on a reactor: for how long it was busy, since when its input has been there,
 * and how much of it waits. Written by the reactor's thread; counts are read by scrapes.
 */
public final class Probe {
  private final SelectorClock clock = new SelectorClock(System.nanoTime());
  private final AtomicLong busyNanos = new AtomicLong();
  private final AtomicInteger depth = new AtomicInteger();
  private long askedNanos;
  private boolean hasReturned;

  // --- of the reactor's turns ------------------------------------------------------------------

  /** The selector is asked now. */
  void asks(long nowNanos) {
    busyNanos.setOpaque(busyNanos.getPlain() + nowNanos - clock.selectedNanos());
    clock.asked(nowNanos);
    askedNanos = nowNanos;
    hasReturned = false;
  }

  /** The selector has returned, at the latest now. */
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

  /** So much waits for the reactor's own work. */
  public void setDepth(int waiting) {
    depth.setOpaque(waiting);
  }

  // --- for what happens on the reactor ---------------------------------------------------------

  /** When the selector returned last. */
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

  // --- any thread ------------------------------------------------------------------------------

  /** Time since its start in which it did not wait for events. */
  public long busyNanos() {
    return busyNanos.get();
  }

  /** What waits for the reactor's own work. */
  public int depth() {
    return depth.get();
  }
}
