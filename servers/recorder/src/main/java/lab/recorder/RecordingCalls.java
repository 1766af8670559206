package lab.recorder;

import com.sun.net.httpserver.HttpExchange;
import java.io.IOException;
import java.util.Map;
import lab.spec.Answer;
import lab.spec.BadValueException;
import org.jspecify.annotations.Nullable;

/** The calls that record this JVM. Any thread. */
public final class RecordingCalls implements AutoCloseable {
  public static final String NAMES =
      "/recording/cpu /recording/alloc /recording/lock /recording/end";

  private final Recorder recorder = new Recorder();

  /**
   * Does what a call asks for.
   *
   * @return null where it is none of these calls
   */
  public @Nullable Answer answer(HttpExchange exchange) throws IOException {
    return switch (Exchanges.call(exchange)) {
      case "POST /recording/cpu" -> start(Recorder.CPU, exchange);
      case "POST /recording/alloc" -> start(Recorder.ALLOC, exchange);
      case "POST /recording/lock" -> start(Recorder.LOCK, exchange);
      case "POST /recording/end" -> asked(exchange, recorder::end);
      default -> null;
    };
  }

  @Override
  public void close() {
    recorder.close();
  }

  private Answer start(String kind, HttpExchange exchange) throws IOException {
    return asked(exchange, words -> recorder.start(kind, words));
  }

  private static Answer asked(HttpExchange exchange, Call call) throws IOException {
    try {
      return call.answer(Exchanges.numbers(exchange));
    } catch (BadValueException e) {
      return Answer.badRequest(e);
    }
  }

  @FunctionalInterface
  private interface Call {
    Answer answer(Map<String, Long> words) throws IOException, BadValueException;
  }
}
