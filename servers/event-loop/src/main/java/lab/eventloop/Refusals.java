package lab.eventloop;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Map;
import lab.contract.Answer;
import lab.contract.Json;
import lab.contract.Outcome;
import lab.contract.http.MalformedException;

/** What is said to input that is no request. */
final class Refusals {
  static final Answer HEAD_TOO_LONG =
      of(431, "a request's head must not exceed %d bytes".formatted(RequestHead.MAX_BYTES));

  private Refusals() {}

  static Answer malformed(MalformedException reason) {
    return of(400, "malformed request: " + reason.getMessage());
  }

  private static Answer of(int status, String reason) {
    return new Answer(
        status,
        Outcome.CLIENT_ERROR,
        Answer.JSON,
        Json.write(Map.of("error", reason)).getBytes(UTF_8));
  }
}
