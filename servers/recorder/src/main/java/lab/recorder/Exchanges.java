package lab.recorder;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpExchange;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Map;
import lab.spec.Answer;
import lab.spec.BadValueException;
import lab.spec.Json;

/** Reads the calls of a management port, and answers them. */
public final class Exchanges {
  @FunctionalInterface
  public interface Work {
    Answer answer() throws IOException;
  }

  private static final Logger LOG = System.getLogger(Exchanges.class.getName());

  private Exchanges() {}

  /** The method and the path of a call, as {@code GET /health}. */
  public static String call(HttpExchange exchange) {
    return exchange.getRequestMethod() + " " + exchange.getRequestURI().getPath();
  }

  /** The whole numbers of its body, by name. */
  public static Map<String, Long> numbers(HttpExchange exchange)
      throws IOException, BadValueException {
    byte[] body = exchange.getRequestBody().readNBytes(10_000);
    return Json.readNumbers(new String(body, UTF_8));
  }

  /** Sends what the work answers, and ends the call; where it fails 500, and why. */
  public static void answer(HttpExchange exchange, Work work) throws IOException {
    Answer answer;
    try {
      answer = work.answer();
    } catch (IOException | RuntimeException | Error e) {
      LOG.log(Level.ERROR, call(exchange) + " failed", e);
      answer = Answer.error(500, call(exchange) + " failed: " + e);
    }
    try (exchange) {
      exchange.getResponseHeaders().set("Content-Type", answer.contentType());
      exchange.sendResponseHeaders(answer.status(), answer.body().length);
      exchange.getResponseBody().write(answer.body());
    }
  }
}
