package lab.contract.serving;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.US_ASCII;

import java.util.Map;
import java.util.concurrent.atomic.AtomicReferenceArray;
import lab.contract.Answer;
import lab.contract.ModelContext;

/** Makes the heads of answers; those of the usual ones once per second and length. Any thread. */
public final class AnswerHead {
  /** What a client is told that asks whether to send its request's body. Never changed. */
  @SuppressWarnings("MutablePublicArray") // Written to sockets as it is.
  public static final byte[] CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n".getBytes(US_ASCII);

  private static final int MAX_KEPT_LENGTH = 4096;

  private static final Map<Integer, String> REASONS =
      Map.of(
          200, "OK",
          400, "Bad Request",
          404, "Not Found",
          405, "Method Not Allowed",
          431, "Request Header Fields Too Large",
          500, "Internal Server Error",
          501, "Not Implemented",
          502, "Bad Gateway",
          503, "Service Unavailable",
          504, "Gateway Timeout");

  @SuppressWarnings("ArrayRecordComponent") // Handed on, never compared.
  private record Made(String date, byte[] head) {}

  private final String model;
  private final HttpDate date;

  /** Heads of JSON answers with status 200 on a connection that stays, by length of the body. */
  private final AtomicReferenceArray<Made> usual = new AtomicReferenceArray<>(MAX_KEPT_LENGTH);

  /**
   * @param model the model's name, for the header {@link ModelContext#MODEL_HEADER}
   */
  public AnswerHead(String model) {
    this(model, new HttpDate());
  }

  AnswerHead(String model, HttpDate date) {
    this.model = model;
    this.date = date;
  }

  /**
   * Returns an answer's head with its blank line, not to be changed.
   *
   * @param connection value of the header Connection; empty for none
   */
  public byte[] of(Answer answer, String connection) {
    int length = answer.body().length;
    boolean isUsual =
        answer.status() == 200
            && connection.isEmpty()
            && length < MAX_KEPT_LENGTH
            && answer.contentType().equals(Answer.JSON);
    String now = date.now();
    if (!isUsual) {
      return make(answer, now, connection);
    }
    Made known = usual.get(length);
    if (known == null || !known.date.equals(now)) {
      known = new Made(now, make(answer, now, connection));
      usual.set(length, known);
    }
    return known.head;
  }

  private byte[] make(Answer answer, String now, String connection) {
    StringBuilder head =
        new StringBuilder(200)
            .append("HTTP/1.1 ")
            .append(answer.status())
            .append(' ')
            .append(REASONS.getOrDefault(answer.status(), "Unknown"))
            .append("\r\nContent-Type: ")
            .append(answer.contentType())
            .append("\r\n")
            .append(ModelContext.MODEL_HEADER)
            .append(": ")
            .append(model)
            .append("\r\nDate: ")
            .append(now)
            .append("\r\nContent-Length: ")
            .append(answer.body().length);
    if (answer.status() == 405) {
      head.append("\r\nAllow: GET");
    }
    if (!connection.isEmpty()) {
      head.append("\r\nConnection: ").append(connection);
    }
    return head.append("\r\n\r\n").toString().getBytes(ISO_8859_1);
  }
}
