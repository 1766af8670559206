package lab.observe;

/**
 * What is measured on an event loop: for how long it is busy, and since when its input has been
 * there. The loop's thread only, except {@link #busyNanos}.
 *
 * <pre>
 *   asks --> select --> returned --> reads, writes --> took --> tasks, timers --> asks
 *           (waiting)   '---------------------- at work ----------------------'
 * </pre>
 */
public final class LoopProbe {
  private final SelectorClock clock = new SelectorClock(System.nanoTime());
  private boolean hasReturned;

  /** Work of the turns that have ended. Written by the loop alone, as the next one. */
  private volatile long busyNanos;

  /** Since when the loop is at work; 0 while it waits. */
  private volatile long busySinceNanos;

  private long reportedNanos;

  /** The selector is asked now. To ask without waiting is work. */
  public void asks(long nowNanos, boolean waits) {
    long since = busySinceNanos;
    busySinceNanos = 0;
    if (since != 0) {
      busyNanos = busyNanos + nowNanos - since;
    }
    if (!waits) {
      busySinceNanos = nowNanos;
    }
    clock.asked(nowNanos);
    hasReturned = false;
  }

  /** The selector has returned, at the latest now: called as often as input is read. */
  public void returned() {
    if (!hasReturned) {
      hasReturned = true;
      long now = System.nanoTime();
      clock.selected(now);
      if (busySinceNanos == 0) {
        busySinceNanos = now;
      }
    }
  }

  /** It was at work for so long by now, if it is known better than by {@link #returned}. */
  public void hasWorkedFor(long nanos) {
    busySinceNanos = System.nanoTime() - nanos;
  }

  /** All of so many keys is read, which is all that there was unless it is the most. */
  public void took(int keys) {
    returned();
    clock.took(keys);
  }

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

  /** Time since its start in which it did not wait for events, work under way included. */
  public synchronized long busyNanos() {
    // In this order, and asks() writes in the other: a turn that ends in between is missed until
    // the next call, never doubled.
    long ended = busyNanos;
    long since = busySinceNanos;
    long busy = since == 0 ? ended : ended + System.nanoTime() - since;
    reportedNanos = Math.max(reportedNanos, busy);
    return reportedNanos;
  }
}
