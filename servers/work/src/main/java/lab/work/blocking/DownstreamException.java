package lab.work.blocking;

import lab.spec.DownstreamOutcome;

/** A downstream call failed. Has no stack trace: under overload it is thrown thousands a second. */
public final class DownstreamException extends Exception {
  private static final long serialVersionUID = 1;

  private final DownstreamOutcome outcome;

  DownstreamException(DownstreamOutcome outcome) {
    super(outcome.label(), null, false, false);
    this.outcome = outcome;
  }

  /** Never {@link DownstreamOutcome#OK}. */
  public DownstreamOutcome outcome() {
    return outcome;
  }
}
