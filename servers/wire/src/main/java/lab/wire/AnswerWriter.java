package lab.wire;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.util.Map;
import java.util.stream.Collectors;

/** Writes answers. Any thread. */
public final class AnswerWriter {
  /** Tells a client that waits for it to send its request's body. Never changed. */
  @SuppressWarnings("MutablePublicArray") // Written to sockets as it is.
  public static final byte[] CONTINUE = bytes("HTTP/1.1 100 Continue\r\n\r\n");

  private static final Map<Integer, byte[]> STATUS_LINES =
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
              504, "Gateway Timeout")
          .entrySet()
          .stream()
          .collect(
              Collectors.toUnmodifiableMap(
                  Map.Entry::getKey, line -> statusLine(line.getKey(), line.getValue())));

  private static final byte[] LENGTH = bytes("\r\nContent-Length: ");
  private static final byte[] ALLOW = bytes("\r\nAllow: GET");
  private static final byte[] CLOSE = bytes("\r\nConnection: close\r\n\r\n");
  private static final byte[] KEEP = bytes("\r\nConnection: keep-alive\r\n\r\n");
  private static final byte[] END = bytes("\r\n\r\n");
  private static final byte[] NOTHING = new byte[0];

  private final byte[] field;
  private final HttpDate date;

  /** The field is in the header of every answer. */
  public AnswerWriter(String field) {
    this(field, new HttpDate());
  }

  AnswerWriter(String field, HttpDate date) {
    this.field = bytes("\r\n" + field + "\r\nDate: ");
    this.date = date;
  }

  /** Returns the whole answer to a request, after which the connection stays or not. */
  public byte[] answer(Request to, int status, String contentType, byte[] body, boolean stays) {
    // That it stays goes without saying in HTTP/1.1.
    byte[] end = stays ? (to.isHttp11() ? END : KEEP) : CLOSE;
    return write(status, contentType, body, to.answerHasBody(), end);
  }

  /** Returns the whole answer to input that is no request: the last one on its connection. */
  public byte[] refusal(int status, String contentType, byte[] body) {
    return write(status, contentType, body, true, CLOSE);
  }

  private byte[] write(int status, String contentType, byte[] body, boolean hasBody, byte[] end) {
    byte[] line = STATUS_LINES.get(status);
    byte[][] parts = {
      line != null ? line : statusLine(status, "Unknown"),
      bytes(contentType),
      field,
      date.bytes(),
      LENGTH,
      bytes(Integer.toString(body.length)),
      status == 405 ? ALLOW : NOTHING,
      end,
      hasBody ? body : NOTHING
    };
    int length = 0;
    for (byte[] part : parts) {
      length += part.length;
    }
    byte[] all = new byte[length];
    int at = 0;
    for (byte[] part : parts) {
      System.arraycopy(part, 0, all, at, part.length);
      at += part.length;
    }
    return all;
  }

  private static byte[] statusLine(int status, String reason) {
    return bytes("HTTP/1.1 " + status + ' ' + reason + "\r\nContent-Type: ");
  }

  private static byte[] bytes(String text) {
    return text.getBytes(ISO_8859_1);
  }
}
