package lab.spec;

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

  /** Of an answer with this status, which was no refusal of a full queue. */
  public static Outcome ofStatus(int status) {
    if (status < 400) {
      return OK;
    }
    return status < 500 ? CLIENT_ERROR : SERVER_ERROR;
  }

  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }
}
