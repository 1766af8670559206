package lab.contract.serving;

import lab.contract.Answer;
import lab.contract.http.MalformedException;

/** The answers to input that is no request. */
public final class Refusals {
  /** The head is longer than {@link RequestHead#MAX_BYTES}. */
  public static final Answer HEAD_TOO_LONG =
      Answer.error(
          431, "a request's head must not exceed %d bytes".formatted(RequestHead.MAX_BYTES));

  private Refusals() {}

  /** It is no HTTP/1.1, or none that is allowed. */
  public static Answer malformed(MalformedException reason) {
    return Answer.error(400, "malformed request: " + reason.getMessage());
  }
}
