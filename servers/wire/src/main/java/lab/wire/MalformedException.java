package lab.wire;

/** The input is not HTTP/1.1. It has no stack trace: the peer is at fault, and may be so often. */
public final class MalformedException extends Exception {
  private static final long serialVersionUID = 1;

  private final boolean tooLong;

  /** The reason is what is wrong, as the peer is to read it. */
  public MalformedException(String reason) {
    this(reason, false);
  }

  private MalformedException(String reason, boolean tooLong) {
    super(reason, null, false, false);
    this.tooLong = tooLong;
  }

  /** A request's head exceeds its limit, which has a status of its own. */
  static MalformedException headTooLong(int maxBytes) {
    return new MalformedException(
        "a request's head must not exceed %d bytes".formatted(maxBytes), true);
  }

  /** True if a request's head exceeds its limit: 431, not 400. */
  public boolean isHeadTooLong() {
    return tooLong;
  }
}
