package lab.wire;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.util.Arrays;

/** Reads requests' heads. Reused, by one thread at a time: it holds the last one's fields. */
public final class RequestHead {
  private static final byte[] GET = "GET".getBytes(ISO_8859_1);
  private static final byte[] HTTP_10 = "HTTP/1.0".getBytes(ISO_8859_1);
  private static final byte[] HTTP_11 = "HTTP/1.1".getBytes(ISO_8859_1);

  private final HeaderFields fields = new HeaderFields();
  private boolean http11;

  /** Reads a head, whose blank line is there. */
  Request read(byte[] bytes, int from) throws MalformedException {
    int lineEnd = HttpBytes.indexOf(bytes, from, bytes.length, '\n');
    int methodEnd = HttpBytes.indexOf(bytes, from, lineEnd, ' ');
    int targetEnd = methodEnd < 0 ? -1 : HttpBytes.indexOf(bytes, methodEnd + 1, lineEnd, ' ');
    if (methodEnd <= from || targetEnd <= methodEnd + 1) {
      throw new MalformedException("no request line");
    }
    int versionEnd = HttpBytes.trimBlanks(bytes, targetEnd + 1, lineEnd);
    http11 = isExactly(bytes, targetEnd + 1, versionEnd, HTTP_11);
    if (!http11 && !isExactly(bytes, targetEnd + 1, versionEnd, HTTP_10)) {
      throw new MalformedException("neither HTTP/1.1 nor HTTP/1.0");
    }
    String method = method(bytes, from, methodEnd);
    fields.read(bytes, lineEnd + 1);
    if (http11 ? fields.hosts() != 1 : fields.hosts() > 1) {
      throw new MalformedException("not one Host");
    }
    if (!http11 && fields.chunked()) {
      throw new MalformedException("HTTP/1.0 knows no chunks");
    }
    RequestTarget target =
        RequestTarget.parse(
            new String(bytes, methodEnd + 1, targetEnd - methodEnd - 1, ISO_8859_1));
    boolean keepAlive = http11 ? !fields.close() : fields.keepAlive() && !fields.close();
    return new Request(method, target.path(), target.query(), http11, keepAlive);
  }

  /** True if the client waits for {@code 100 Continue}, which HTTP/1.0 does not know. */
  boolean expectsContinue() {
    return http11 && fields.expectsContinue();
  }

  /** How the body ends. */
  HeaderFields fields() {
    return fields;
  }

  private static String method(byte[] bytes, int from, int to) throws MalformedException {
    if (isExactly(bytes, from, to, GET)) {
      return "GET";
    }
    if (!HttpBytes.isToken(bytes, from, to)) {
      throw new MalformedException("a method that is no token");
    }
    return new String(bytes, from, to - from, ISO_8859_1);
  }

  private static boolean isExactly(byte[] bytes, int from, int to, byte[] wanted) {
    return Arrays.equals(bytes, from, to, wanted, 0, wanted.length);
  }
}
