package lab.wire;

/** Searches and compares the bytes of HTTP heads, so that nobody has to make text of them. */
public final class HttpBytes {
  /** For each ASCII character whether a token may have it (RFC 9110, 5.6.2). */
  private static final boolean[] TOKEN = ascii("!#$%&'*+-.^_`|~");

  /** For each ASCII character whether a host's name or address may (RFC 3986, 3.2.2). */
  private static final boolean[] HOST = ascii("-._~%!$&'()*+,;=[]:");

  private HttpBytes() {}

  static boolean isToken(byte b) {
    return b >= 0 && TOKEN[b];
  }

  /** Whether this is a token, such as a method or a field's name (RFC 9110, 5.6.2). */
  public static boolean isToken(byte[] bytes, int from, int to) {
    for (int i = from; i < to; i++) {
      if (!isToken(bytes[i])) {
        return false;
      }
    }
    return from < to;
  }

  /** Whether this is a host, with or without a port, or nothing: what a Host field may say. */
  public static boolean isHost(byte[] bytes, int from, int to) {
    int port = to;
    for (int i = from; i < to; i++) {
      byte b = bytes[i];
      if (b < 0 || !HOST[b]) {
        return false;
      }
      if (b == ':') {
        port = i + 1;
      } else if (b == ']') {
        // The colons so far were an address's own.
        port = to;
      }
    }
    for (int i = port; i < to; i++) {
      if (bytes[i] < '0' || bytes[i] > '9') {
        return false;
      }
    }
    return true;
  }

  private static boolean[] ascii(String besidesLettersAndDigits) {
    boolean[] allowed = new boolean[128];
    for (char c = 0; c < 128; c++) {
      allowed[c] =
          (c >= 'a' && c <= 'z')
              || (c >= 'A' && c <= 'Z')
              || (c >= '0' && c <= '9')
              || besidesLettersAndDigits.indexOf(c) >= 0;
    }
    return allowed;
  }

  /** The index after a head's blank line, or -1 without one. Lines end with LF or CR LF. */
  public static int endOfHead(byte[] bytes, int from, int to) {
    for (int i = from; i < to; i++) {
      if (bytes[i] == '\n') {
        if (i + 1 < to && bytes[i + 1] == '\n') {
          return i + 2;
        }
        if (i + 2 < to && bytes[i + 1] == '\r' && bytes[i + 2] == '\n') {
          return i + 3;
        }
      }
    }
    return -1;
  }

  public static int indexOf(byte[] bytes, int from, int to, char wanted) {
    for (int i = from; i < to; i++) {
      if (bytes[i] == wanted) {
        return i;
      }
    }
    return -1;
  }

  /** Whether the bytes are this ASCII text, in upper or lower case. */
  public static boolean is(byte[] bytes, int from, int to, String lowerCase) {
    if (to - from != lowerCase.length()) {
      return false;
    }
    for (int i = 0; i < lowerCase.length(); i++) {
      byte b = bytes[from + i];
      if ((b >= 'A' && b <= 'Z' ? b + ('a' - 'A') : b) != lowerCase.charAt(i)) {
        return false;
      }
    }
    return true;
  }

  /** Whether a list like {@code a, b} has this member, in upper or lower case. */
  static boolean lists(byte[] bytes, int from, int to, String lowerCase) {
    int start = from;
    while (start < to) {
      int comma = indexOf(bytes, start, to, ',');
      int end = comma < 0 ? to : comma;
      int first = skipBlanks(bytes, start, end);
      if (is(bytes, first, trimBlanks(bytes, first, end), lowerCase)) {
        return true;
      }
      start = end + 1;
    }
    return false;
  }

  /** Returns the index of the first byte that is no space or tab; {@code to} when there is none. */
  static int skipBlanks(byte[] bytes, int from, int to) {
    int i = from;
    while (i < to && (bytes[i] == ' ' || bytes[i] == '\t')) {
      i++;
    }
    return i;
  }

  /** Returns the end of the bytes without the spaces, tabs and CRs before it. */
  public static int trimBlanks(byte[] bytes, int from, int to) {
    int i = to;
    while (i > from && (bytes[i - 1] == ' ' || bytes[i - 1] == '\t' || bytes[i - 1] == '\r')) {
      i--;
    }
    return i;
  }

  /** Reads a decimal number of 1 to 18 digits and nothing else. */
  public static long number(byte[] bytes, int from, int to) throws MalformedException {
    if (from == to || to - from > 18) {
      throw new MalformedException("not a number");
    }
    long number = 0;
    for (int i = from; i < to; i++) {
      int digit = bytes[i] - '0';
      if (digit < 0 || digit > 9) {
        throw new MalformedException("not a number");
      }
      number = 10 * number + digit;
    }
    return number;
  }
}
