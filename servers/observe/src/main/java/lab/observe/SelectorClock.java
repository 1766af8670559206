package lab.observe;

/**
 * Since when the input of a selection has been there, on average. No selector tells. What it waited
 * for became ready as it returned. What it found at once became ready at any time since it returned
 * last, as the loop was at work: on average in the middle. Where that was all that a selection
 * holds, there was more, which has been there since the same time. What the loop itself waited for
 * a CPU is not in it. The loop's thread only.
 */
public final class SelectorClock {
  /**
   * A selector that returns sooner than that found at once what it was asked for, and so does one
   * that takes less than this part of the work before: with so much to do, there is something.
   */
  private static final long AT_ONCE_NANOS = 50_000;

  private static final int PART_OF_WORK = 64;

  /** So many keys are all that one selection of the JDK's holds (EPollSelectorImpl). */
  static final int MOST_KEYS = 1024;

  private long askedNanos;
  private long lastNanos;
  private long selectedNanos;
  private boolean foundAtOnce;
  private boolean leftSome;

  /** All times of it are of {@link System#nanoTime}. */
  public SelectorClock(long nowNanos) {
    askedNanos = nowNanos;
    lastNanos = nowNanos;
    selectedNanos = nowNanos;
  }

  /** The selector is asked. */
  public void asked(long nowNanos) {
    askedNanos = nowNanos;
  }

  /** It has returned. */
  public void selected(long nowNanos) {
    if (!leftSome) {
      lastNanos = selectedNanos;
    }
    selectedNanos = nowNanos;
    long atOnceNanos = Math.max(AT_ONCE_NANOS, (askedNanos - lastNanos) / PART_OF_WORK);
    foundAtOnce = nowNanos - askedNanos < atOnceNanos;
  }

  /** So many keys were in that selection. */
  public void took(int keys) {
    leftSome = keys >= MOST_KEYS;
  }

  /** When it returned last: since then at least, the input has been there. */
  public long selectedNanos() {
    return selectedNanos;
  }

  /** Since when the last selection's input has been there, at the earliest since that time. */
  public long readyNanos(long earliestNanos) {
    long from = earliestNanos - lastNanos > 0 ? earliestNanos : lastNanos;
    return foundAtOnce && from - selectedNanos < 0
        ? from + (selectedNanos - from) / 2
        : selectedNanos;
  }

  /** The same of input that could have come at any time. */
  public long readyNanos() {
    return readyNanos(lastNanos);
  }
}
