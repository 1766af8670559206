package lab.spec;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A complete answer: status and body. Whoever sends it adds {@code Content-Type}, {@code
 * Content-Length}, {@code Lab-Model}, {@code Date} if its server does, and {@code Allow: GET} to a
 * 405.
 *
 * @param body never changed after construction, so that constant answers can be shared
 */
@SuppressWarnings("ArrayRecordComponent") // One copy per request would be the largest allocation.
public record Answer(int status, Outcome outcome, String contentType, byte[] body) {
  public static final String JSON = "application/json";

  static final Answer METHOD_NOT_ALLOWED = error(405, "only GET is allowed");

  public static final Answer QUEUE_FULL =
      new Answer(
          503, Outcome.REJECTED, JSON, bytes(Map.of("error", "the queue for a worker is full")));

  /** The work failed in a way no route allows for; the server's log has the stack trace. */
  public static final Answer INTERNAL_ERROR = error(500, "internal error, see the server's log");

  private static final Answer DOWNSTREAM_TIMEOUT =
      error(504, "the downstream did not answer in time");
  private static final Answer DOWNSTREAM_BROKEN =
      error(502, "the downstream refused or broke the connection, or answered badly");

  /** A 200 with a body that is JSON already. */
  public static Answer ok(byte[] json) {
    return new Answer(200, Outcome.OK, JSON, json);
  }

  public static Answer ok(Map<String, ?> object) {
    return ok(bytes(object));
  }

  /** Every model answers a failed downstream call with the same status and body. */
  public static Answer downstreamFailed(DownstreamOutcome outcome) {
    return outcome == DownstreamOutcome.TIMEOUT ? DOWNSTREAM_TIMEOUT : DOWNSTREAM_BROKEN;
  }

  public static Answer badRequest(BadValueException reason) {
    return error(400, String.valueOf(reason.getMessage()));
  }

  static Answer notFound(List<String> known) {
    Map<String, Object> body = new LinkedHashMap<>();
    body.put("error", "no such route");
    body.put("routes", known);
    return new Answer(404, Outcome.CLIENT_ERROR, JSON, bytes(body));
  }

  /** An error with its reason: the client's below 500, else the server's. */
  public static Answer error(int status, String reason) {
    return new Answer(status, Outcome.ofStatus(status), JSON, bytes(Map.of("error", reason)));
  }

  private static byte[] bytes(Map<String, ?> object) {
    return Json.write(object).getBytes(UTF_8);
  }
}
