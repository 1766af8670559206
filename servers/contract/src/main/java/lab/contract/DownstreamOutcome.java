package lab.contract;

import java.util.Locale;

/** How a downstream call ended. */
public enum DownstreamOutcome {
  /** Answered 200 with a complete body. */
  OK,
  /** The deadline passed: waiting for a connection, connecting, or waiting for the answer. */
  TIMEOUT,
  /** The connection was refused. */
  REFUSED,
  /** Broken off, unresolvable, or answered with anything but 200. */
  ERROR;

  /** Value of the label {@code outcome}. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }
}
