package lab.eventloop;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.util.Map;
import lab.contract.Answer;
import lab.contract.ModelContext;

/** Makes the heads of answers; those of the usual ones once per length. One thread only. */
final class AnswerHead {
  private static final int MAX_KEPT_LENGTH = 4096;

  private static final Map<Integer, String> REASONS =
      Map.of(
          200, "OK",
          400, "Bad Request",
          404, "Not Found",
          405, "Method Not Allowed",
          431, "Request Header Fields Too Large",
          500, "Internal Server Error",
          502, "Bad Gateway",
          503, "Service Unavailable",
          504, "Gateway Timeout");

  private final String model;

  /** Heads of JSON answers with status 200 on a connection that stays, by length of the body. */
  private final byte[][] usual = new byte[MAX_KEPT_LENGTH][];

  AnswerHead(String model) {
    this.model = model;
  }

  /**
   * @param connection value of the header Connection; empty for none
   */
  byte[] of(Answer answer, String connection) {
    int length = answer.body().length;
    boolean isUsual =
        answer.status() == 200
            && connection.isEmpty()
            && length < MAX_KEPT_LENGTH
            && answer.contentType().equals(Answer.JSON);
    if (!isUsual) {
      return make(answer, connection);
    }
    byte[] known = usual[length];
    if (known == null) {
      known = make(answer, connection);
      usual[length] = known;
    }
    return known;
  }

  private byte[] make(Answer answer, String connection) {
    StringBuilder head =
        new StringBuilder(160)
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
