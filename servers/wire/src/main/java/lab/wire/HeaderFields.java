package lab.wire;

/** The fields that decide how a message ends. Reused: it holds those of the last one read. */
public final class HeaderFields {
  private long contentLength;

  private boolean chunked;
  private boolean close;
  private boolean keepAlive;
  private boolean expectsContinue;
  private int hosts;

  /** Reads the lines up to the blank one, which must be there, from where the first begins. */
  public void read(byte[] bytes, int from) throws MalformedException {
    contentLength = -1;
    chunked = false;
    close = false;
    keepAlive = false;
    expectsContinue = false;
    hosts = 0;
    int line = from;
    while (bytes[line] != '\n' && !(bytes[line] == '\r' && bytes[line + 1] == '\n')) {
      int next = HttpBytes.indexOf(bytes, line, bytes.length, '\n') + 1;
      readLine(bytes, line, next - 1);
      line = next;
    }
    if (chunked && contentLength >= 0) {
      throw new MalformedException("both a length and chunks");
    }
  }

  /** Bytes of the body; -1 when the header does not say. */
  public long contentLength() {
    return contentLength;
  }

  public boolean chunked() {
    return chunked;
  }

  public boolean close() {
    return close;
  }

  public boolean keepAlive() {
    return keepAlive;
  }

  public boolean expectsContinue() {
    return expectsContinue;
  }

  /** How many Host fields there are, each of which names a host, or nothing. */
  public int hosts() {
    return hosts;
  }

  private void readLine(byte[] bytes, int from, int lineEnd) throws MalformedException {
    int colon = from;
    while (colon < lineEnd && HttpBytes.isToken(bytes[colon])) {
      colon++;
    }
    // A blank before the colon, or at the start, is how requests are smuggled past proxies.
    if (colon == from || colon == lineEnd || bytes[colon] != ':') {
      throw new MalformedException("no header field");
    }
    int valueFrom = HttpBytes.skipBlanks(bytes, colon + 1, lineEnd);
    int valueTo = HttpBytes.trimBlanks(bytes, valueFrom, lineEnd);
    for (int i = valueFrom; i < valueTo; i++) {
      if (bytes[i] >= 0 && bytes[i] < ' ' && bytes[i] != '\t') {
        throw new MalformedException("a control character in a header field");
      }
    }
    if (HttpBytes.is(bytes, from, colon, "host")) {
      if (!HttpBytes.isHost(bytes, valueFrom, valueTo)) {
        throw new MalformedException("a Host that is none");
      }
      hosts++;
    } else if (HttpBytes.is(bytes, from, colon, "expect")) {
      expectsContinue = HttpBytes.is(bytes, valueFrom, valueTo, "100-continue");
    } else if (HttpBytes.is(bytes, from, colon, "connection")) {
      close |= HttpBytes.lists(bytes, valueFrom, valueTo, "close");
      keepAlive |= HttpBytes.lists(bytes, valueFrom, valueTo, "keep-alive");
    } else if (HttpBytes.is(bytes, from, colon, "content-length")) {
      long length = HttpBytes.number(bytes, valueFrom, valueTo);
      if (contentLength >= 0 && contentLength != length) {
        throw new MalformedException("two lengths");
      }
      contentLength = length;
    } else if (HttpBytes.is(bytes, from, colon, "transfer-encoding")) {
      if (chunked || !HttpBytes.is(bytes, valueFrom, valueTo, "chunked")) {
        throw new MalformedException("a transfer encoding nobody asked for");
      }
      chunked = true;
    }
  }
}
