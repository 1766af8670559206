package lab.contract;

import java.util.Locale;

/** How a request ended. */
public enum Outcome {
  /** Answered with a status below 400. */
  OK,
  /** Answered 4xx. */
  CLIENT_ERROR,
  /** Answered 5xx, except {@link #REJECTED}. */
  SERVER_ERROR,
  /** Answered 503 because a bounded queue was full: the work was never begun. */
  REJECTED,
  /** The client was gone before its answer was written. */
  ABORTED;

  /** Value of the label {@code outcome}. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }
}
