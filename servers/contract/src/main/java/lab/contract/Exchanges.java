package lab.contract;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpExchange;
import java.io.IOException;
import java.util.Map;

/** Reads the calls of a management port, and answers them. */
final class Exchanges {
  private static final int MAX_BODY_BYTES = 10_000;

  private Exchanges() {}

  /** The method and the path of a call, as {@code GET /health}. */
  static String call(HttpExchange exchange) {
    return exchange.getRequestMethod() + " " + exchange.getRequestURI().getPath();
  }

  /** The whole numbers of its body, by name. */
  static Map<String, Long> numbers(HttpExchange exchange) throws IOException, BadValueException {
    byte[] body = exchange.getRequestBody().readNBytes(MAX_BODY_BYTES);
    return Json.readNumbers(new String(body, UTF_8));
  }

  /** Sends the whole answer. */
  static void send(HttpExchange exchange, Answer answer) throws IOException {
    exchange.getResponseHeaders().set("Content-Type", answer.contentType());
    exchange.sendResponseHeaders(answer.status(), answer.body().length);
    exchange.getResponseBody().write(answer.body());
  }
}
