package lab.contract.serving;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import lab.contract.RouteCall;
import lab.contract.http.HeaderFields;
import lab.contract.http.HttpBytes;
import lab.contract.http.MalformedException;

/** Reads requests' heads. Reused, by one thread at a time: it holds the last one's. */
public final class RequestHead {
  /** Longer heads are refused with 431. */
  public static final int MAX_BYTES = 32 << 10;

  private static final RouteCall NONE_YET = RouteCall.NONE;

  private final KnownTargets known;
  private final HeaderFields fields = new HeaderFields();

  private RouteCall call = NONE_YET;
  private boolean http11;
  private boolean keepAlive;
  private boolean answerHasBody;

  /**
   * @param known shared by a server's readers, or one's own
   */
  public RequestHead(KnownTargets known) {
    this.known = known;
  }

  /** Reads a head, whose blank line is there. */
  public void read(byte[] bytes, int from) throws MalformedException {
    int lineEnd = HttpBytes.endOfLine(bytes, from);
    int methodEnd = HttpBytes.indexOf(bytes, from, lineEnd, ' ');
    int targetEnd = methodEnd < 0 ? -1 : HttpBytes.indexOf(bytes, methodEnd + 1, lineEnd, ' ');
    if (methodEnd <= from || targetEnd <= methodEnd + 1) {
      throw new MalformedException("no request line");
    }
    boolean get = isExactly(bytes, from, methodEnd, "GET");
    if (!get && !HttpBytes.isToken(bytes, from, methodEnd)) {
      throw new MalformedException("a method that is no token");
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
    answerHasBody = get || !isExactly(bytes, from, methodEnd, "HEAD");
    call =
        get
            ? known.get(bytes, methodEnd + 1, targetEnd)
            : known.resolve(
                new String(bytes, from, methodEnd - from, ISO_8859_1),
                bytes,
                methodEnd + 1,
                targetEnd);
  }

  /** The route and its parameters, or the refusal of them. */
  public RouteCall call() {
    return call;
  }

  /** Whether it is HTTP/1.1; else it is HTTP/1.0. */
  public boolean isHttp11() {
    return http11;
  }

  /** Whether the client wants the connection kept after this request. */
  public boolean keepAlive() {
    return keepAlive;
  }

  /** False for HEAD. */
  public boolean answerHasBody() {
    return answerHasBody;
  }

  /** Whether the client waits to be told to send its body; in HTTP/1.0 nobody is told so. */
  public boolean expectsContinue() {
    return http11 && fields.expectsContinue();
  }

  /** How its body ends. */
  public HeaderFields fields() {
    return fields;
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
}
