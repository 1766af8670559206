package lab.spec;

/** A value from outside is not allowed. The message is one line: what is wrong, what is allowed. */
public final class BadValueException extends Exception {
  private static final long serialVersionUID = 1;

  public BadValueException(String message) {
    super(message, null, false, false);
  }
}
