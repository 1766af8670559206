package lab.contract.http;

/** The input is not HTTP/1.1. It has no stack trace: the peer is at fault, and may be so often. */
public final class MalformedException extends Exception {
  private static final long serialVersionUID = 1;

  /**
   * @param reason what is wrong, as the peer is to read it
   */
  public MalformedException(String reason) {
    super(reason, null, false, false);
  }
}
