package lab.eventloop;

/**
 * The header fields that decide how a message ends, the same in requests and answers; all others
 * are checked for form and passed over. Reused for every message of a loop.
 */
final class HeaderFields {
  /** Bytes of the body; -1 when the header does not say. */
  private long contentLength;

  private boolean chunked;
  private boolean close;
  private boolean keepAlive;
  private boolean expectsContinue;

  /** Reads the lines up to the blank one, which is there. */
  void read(byte[] bytes, int from) throws MalformedException {
    contentLength = -1;
    chunked = false;
    close = false;
    keepAlive = false;
    expectsContinue = false;
    int line = from;
    while (bytes[line] != '\n' && !(bytes[line] == '\r' && bytes[line + 1] == '\n')) {
      int next = Bytes.endOfLine(bytes, line) + 1;
      readLine(bytes, line, next - 1);
      line = next;
    }
    if (chunked && contentLength >= 0) {
      throw new MalformedException("both a length and chunks");
    }
  }

  long contentLength() {
    return contentLength;
  }

  boolean chunked() {
    return chunked;
  }

  boolean close() {
    return close;
  }

  boolean keepAlive() {
    return keepAlive;
  }

  boolean expectsContinue() {
    return expectsContinue;
  }

  private void readLine(byte[] bytes, int from, int lineEnd) throws MalformedException {
    int colon = from;
    while (colon < lineEnd && bytes[colon] > ' ' && bytes[colon] != ':') {
      colon++;
    }
    // A blank before the colon, or at the start, is how requests are smuggled past proxies.
    if (colon == from || colon == lineEnd || bytes[colon] != ':') {
      throw new MalformedException("no header field");
    }
    int valueFrom = Bytes.skipBlanks(bytes, colon + 1, lineEnd);
    int valueTo = Bytes.trimBlanks(bytes, valueFrom, lineEnd);
    for (int i = valueFrom; i < valueTo; i++) {
      if (bytes[i] >= 0 && bytes[i] < ' ' && bytes[i] != '\t') {
        throw new MalformedException("a control character in a header field");
      }
    }
    switch (colon - from) {
      case 6 -> {
        if (Bytes.is(bytes, from, colon, "expect")) {
          expectsContinue = Bytes.is(bytes, valueFrom, valueTo, "100-continue");
        }
      }
      case 10 -> {
        if (Bytes.is(bytes, from, colon, "connection")) {
          close |= Bytes.lists(bytes, valueFrom, valueTo, "close");
          keepAlive |= Bytes.lists(bytes, valueFrom, valueTo, "keep-alive");
        }
      }
      case 14 -> {
        if (Bytes.is(bytes, from, colon, "content-length")) {
          long length = Bytes.number(bytes, valueFrom, valueTo);
          if (contentLength >= 0 && contentLength != length) {
            throw new MalformedException("two lengths");
          }
          contentLength = length;
        }
      }
      case 17 -> {
        if (Bytes.is(bytes, from, colon, "transfer-encoding")) {
          if (!Bytes.is(bytes, valueFrom, valueTo, "chunked")) {
            throw new MalformedException("a transfer encoding nobody asked for");
          }
          chunked = true;
        }
      }
      default -> {
        // Means nothing here.
      }
    }
  }
}
