package lab.eventloop;

/** What came is not HTTP/1.1. Has no stack trace: the peer is at fault, and may be so often. */
final class MalformedException extends Exception {
  private static final long serialVersionUID = 1;

  MalformedException(String what) {
    super(what, null, false, false);
  }
}
