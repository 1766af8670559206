package lab.vertx;

import io.vertx.core.Future;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerResponse;
import io.vertx.ext.web.RoutingContext;
import java.net.HttpURLConnection;
import lab.spec.Answer;

/** Sends the contract's answers through Vert.x's response. */
final class Answers {
  private static final CharSequence JSON = HttpHeaders.createOptimized(Answer.JSON);
  private static final CharSequence ALLOW = HttpHeaders.createOptimized("Allow");

  private Answers() {}

  /** The request's loop only. Its {@link Exchange} ends when it is written. */
  static void send(Answer answer, RoutingContext routing) {
    HttpServerResponse response = routing.response();
    if (response.closed()) {
      return;
    }
    response
        .setStatusCode(answer.status())
        .putHeader(
            HttpHeaders.CONTENT_TYPE,
            answer.contentType().equals(Answer.JSON) ? JSON : answer.contentType());
    if (answer.status() == HttpURLConnection.HTTP_BAD_METHOD) {
      var _ = response.putHeader(ALLOW, "GET");
    }
    Future<Void> sent = response.end(Buffer.buffer(answer.body()));
    Exchange exchange = Exchange.of(routing);
    if (exchange != null) {
      var _ = sent.onComplete(written -> exchange.written(written, answer.status()));
    }
  }
}
