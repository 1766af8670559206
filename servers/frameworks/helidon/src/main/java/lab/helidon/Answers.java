package lab.helidon;

import io.helidon.http.Header;
import io.helidon.http.HeaderNames;
import io.helidon.http.HeaderValues;
import io.helidon.http.Method;
import io.helidon.http.Status;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import lab.spec.Answer;

/** Sends the contract's answers through Helidon's response. */
final class Answers {
  private static final Header JSON = HeaderValues.createCached("Content-Type", Answer.JSON);
  private static final Header ALLOW_GET = HeaderValues.createCached("Allow", "GET");
  private static final byte[] NO_BODY = {};

  private Answers() {}

  /** Returns when the answer is written to the socket; fails when the client is gone. */
  static void send(Answer answer, ServerRequest request, ServerResponse response) {
    var _ = response.status(Status.create(answer.status()));
    var _ =
        response.header(
            answer.contentType().equals(Answer.JSON)
                ? JSON
                : HeaderValues.create(HeaderNames.CONTENT_TYPE, answer.contentType()));
    if (answer.status() == Status.METHOD_NOT_ALLOWED_405.code()) {
      var _ = response.header(ALLOW_GET);
    }
    if (request.prologue().method().equals(Method.HEAD)) {
      // Helidon would send the body of a HEAD too.
      response.headers().contentLength(answer.body().length);
      response.send(NO_BODY);
    } else {
      response.send(answer.body());
    }
  }
}
