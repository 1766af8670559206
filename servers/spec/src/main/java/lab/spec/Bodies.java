package lab.spec;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.LinkedHashMap;
import java.util.Map;

/** What the routes say when all is well: the same bytes from every model. */
public final class Bodies {
  private Bodies() {}

  /** {@code /}: by hand, as it is asked for tens of thousands of times a second. */
  public static Answer hello(String model, String thread) {
    return Answer.ok(
        ("{\"message\":\"hello\",\"model\":"
                + Json.quote(model)
                + ",\"thread\":"
                + Json.quote(thread)
                + "}")
            .getBytes(UTF_8));
  }

  public static Answer up(String model) {
    return answer("status", "up", "model", model);
  }

  /** {@code /compute}, which is the work itself. */
  public static Answer compute(int limit) {
    return answer("limit", limit, "sum_of_primes", Primes.sumUpTo(limit));
  }

  public static Answer block(int waitedMs) {
    return answer("waited_ms", waitedMs);
  }

  public static Answer file(LineFile.Reading reading) {
    return answer("lines", reading.lines(), "characters", reading.characters());
  }

  public static Answer aggregate(int waitedMs, LineFile.Reading reading) {
    return answer(
        "waited_ms", waitedMs, "lines", reading.lines(), "characters", reading.characters());
  }

  /** {@code /first-success}, with how many branches failed before, and how many stopped as told. */
  public static Answer firstSuccess(String winner, int failed, int cancelled) {
    return answer("winner", winner, "failed", failed, "cancelled", cancelled);
  }

  /** {@code /aggregate-with-fallback}: the fallback stands for a wait that did not end in time. */
  public static Answer aggregateWithFallback(boolean inTime, LineFile.Reading reading) {
    return answer(
        "wait",
        inTime ? "done" : "fallback",
        "lines",
        reading.lines(),
        "characters",
        reading.characters());
  }

  public static Answer multiAggregate(int branches, long totalWaitedMs) {
    return answer("branches", branches, "total_waited_ms", totalWaitedMs);
  }

  /** {@code /metrics}: Prometheus text, here as a request like any other. */
  public static Answer metrics(byte[] exposition) {
    return new Answer(200, Outcome.OK, "text/plain; version=0.0.4; charset=utf-8", exposition);
  }

  private static Answer answer(Object... namesAndValues) {
    Map<String, Object> body = new LinkedHashMap<>();
    for (int i = 0; i < namesAndValues.length; i += 2) {
      body.put((String) namesAndValues[i], namesAndValues[i + 1]);
    }
    return Answer.ok(body);
  }
}
