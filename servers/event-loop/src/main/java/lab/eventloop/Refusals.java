package lab.eventloop;

import lab.contract.Answer;
import lab.contract.http.MalformedException;

/** The answers to input that is no request. */
final class Refusals {
  static final Answer HEAD_TOO_LONG =
      Answer.error(
          431, "a request's head must not exceed %d bytes".formatted(RequestHead.MAX_BYTES));

  private Refusals() {}

  static Answer malformed(MalformedException reason) {
    return Answer.error(400, "malformed request: " + reason.getMessage());
  }
}
