package lab.eventloop;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.Arrays;
import lab.contract.RouteCall;
import lab.contract.http.HeaderFields;
import lab.contract.http.HttpBytes;
import lab.contract.http.MalformedException;

/** Reads requests' heads. Reused for every request of a loop: it holds the last one's. */
final class RequestHead {
  /** Longer heads are refused with 431. */
  static final int MAX_BYTES = 32 << 10;

  private static final int KNOWN_TARGETS = 64;
  private static final int MAX_KNOWN_BYTES = 128;

  /** What GETs of recent targets resolve to, so that the same text is not resolved again. */
  private final byte[][] knownTargets = new byte[KNOWN_TARGETS][0];

  private final RouteCall[] knownCalls = new RouteCall[KNOWN_TARGETS];
  private final HeaderFields fields = new HeaderFields();

  private RouteCall call = RouteCall.resolve("GET", "", null);
  private boolean http11;
  private boolean keepAlive;
  private boolean answerHasBody;

  /** Reads a head, whose blank line is there. */
  void read(byte[] bytes, int from) throws MalformedException {
    int lineEnd = HttpBytes.endOfLine(bytes, from);
    int methodEnd = HttpBytes.indexOf(bytes, from, lineEnd, ' ');
    int targetEnd = methodEnd < 0 ? -1 : HttpBytes.indexOf(bytes, methodEnd + 1, lineEnd, ' ');
    if (methodEnd <= from || targetEnd <= methodEnd + 1) {
      throw new MalformedException("no request line");
    }
    int versionEnd = HttpBytes.trimBlanks(bytes, targetEnd + 1, lineEnd);
    http11 = isExactly(bytes, targetEnd + 1, versionEnd, "HTTP/1.1");
    if (!http11 && !isExactly(bytes, targetEnd + 1, versionEnd, "HTTP/1.0")) {
      throw new MalformedException("neither HTTP/1.1 nor HTTP/1.0");
    }
    fields.read(bytes, lineEnd + 1);
    if (http11 ? fields.hosts() != 1 : fields.hosts() > 1) {
      throw new MalformedException("not one Host");
    }
    if (!http11 && fields.chunked()) {
      throw new MalformedException("HTTP/1.0 knows no chunks");
    }
    keepAlive = http11 ? !fields.close() : fields.keepAlive() && !fields.close();
    boolean get = isExactly(bytes, from, methodEnd, "GET");
    answerHasBody = get || !isExactly(bytes, from, methodEnd, "HEAD");
    call =
        get
            ? resolveGet(bytes, from, methodEnd, targetEnd)
            : resolve(bytes, from, methodEnd, targetEnd);
  }

  RouteCall call() {
    return call;
  }

  boolean isHttp11() {
    return http11;
  }

  /** Whether the client wants the connection kept after this request. */
  boolean keepAlive() {
    return keepAlive;
  }

  /** False for HEAD. */
  boolean answerHasBody() {
    return answerHasBody;
  }

  /** How its body ends. */
  HeaderFields fields() {
    return fields;
  }

  private RouteCall resolveGet(byte[] bytes, int from, int methodEnd, int targetEnd)
      throws MalformedException {
    int targetFrom = methodEnd + 1;
    int hash = 0;
    for (int i = targetFrom; i < targetEnd; i++) {
      hash = 31 * hash + bytes[i];
    }
    int slot = (hash ^ hash >>> 16) & KNOWN_TARGETS - 1;
    byte[] known = knownTargets[slot];
    if (Arrays.equals(known, 0, known.length, bytes, targetFrom, targetEnd)) {
      return knownCalls[slot];
    }
    RouteCall resolved = resolve(bytes, from, methodEnd, targetEnd);
    if (targetEnd - targetFrom <= MAX_KNOWN_BYTES) {
      knownTargets[slot] = Arrays.copyOfRange(bytes, targetFrom, targetEnd);
      knownCalls[slot] = resolved;
    }
    return resolved;
  }

  private static boolean isExactly(byte[] bytes, int from, int to, String text) {
    if (to - from != text.length()) {
      return false;
    }
    for (int i = from; i < to; i++) {
      if (bytes[i] != text.charAt(i - from)) {
        return false;
      }
    }
    return true;
  }

  private static RouteCall resolve(byte[] bytes, int from, int methodEnd, int targetEnd)
      throws MalformedException {
    String method = new String(bytes, from, methodEnd - from, ISO_8859_1);
    String target = new String(bytes, methodEnd + 1, targetEnd - methodEnd - 1, ISO_8859_1);
    try {
      URI uri = new URI(target);
      if (uri.getPath() == null) {
        throw new MalformedException("no path");
      }
      if (uri.getRawFragment() != null) {
        throw new MalformedException("a target has no fragment");
      }
      return RouteCall.resolve(method, uri.getPath(), uri.getRawQuery());
    } catch (URISyntaxException e) {
      throw new MalformedException("no target");
    }
  }
}
