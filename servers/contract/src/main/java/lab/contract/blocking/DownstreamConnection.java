package lab.contract.blocking;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.util.Arrays;

/**
 * One kept-alive HTTP/1.1 connection to the downstream, used by one thread at a time. Reads block;
 * all of them together keep one deadline.
 *
 * <pre>
 *   idle --send--> asked --first byte--> head --blank line--> body --end--> idle
 *                    |                                          '--- no framing, "close" --> closed
 *                    '-- closed before the first byte: {@link StaleException} if it was used before
 * </pre>
 */
final class DownstreamConnection implements AutoCloseable {
  /** The peer had closed an idle connection: nothing was answered, so another one may be tried. */
  static final class StaleException extends IOException {
    private static final long serialVersionUID = 1;
  }

  /** A whole answer. */
  @SuppressWarnings("ArrayRecordComponent") // Handed on, never compared.
  record Reply(int status, byte[] body) {}

  /** Far above what the downstream sends; protects the heap. */
  private static final int MAX_BODY_BYTES = 1 << 20;

  private static final int MAX_HEAD_BYTES = 16 << 10;

  private final Socket socket = new Socket();
  private final InputStream in;
  private final OutputStream out;
  private byte[] buffer = new byte[1024];
  private int from;
  private int to;
  private long deadlineNanos;
  private boolean usedBefore;
  private boolean reusable;
  private long idleSinceNanos;

  DownstreamConnection(InetSocketAddress address, long deadlineNanos) throws IOException {
    this.deadlineNanos = deadlineNanos;
    boolean connected = false;
    try {
      socket.setTcpNoDelay(true);
      socket.connect(address, remainingMs());
      in = socket.getInputStream();
      out = socket.getOutputStream();
      connected = true;
    } finally {
      if (!connected) {
        socket.close();
      }
    }
  }

  /**
   * Sends the request and returns the answer, read to its end.
   *
   * @throws SocketTimeoutException at the deadline
   */
  Reply exchange(byte[] request, long deadline) throws IOException {
    deadlineNanos = deadline;
    reusable = false;
    from = 0;
    to = 0;
    try {
      out.write(request);
      fill();
    } catch (SocketTimeoutException e) {
      throw e;
    } catch (IOException e) {
      throw usedBefore ? new StaleException() : e;
    }
    Reply reply = read();
    usedBefore = true;
    return reply;
  }

  /** Whether the last exchange left it fit for another. */
  boolean isReusable() {
    return reusable;
  }

  void markIdle() {
    idleSinceNanos = System.nanoTime();
  }

  boolean isIdleLongerThan(long nanos) {
    return System.nanoTime() - idleSinceNanos > nanos;
  }

  @Override
  public void close() {
    try {
      socket.close();
    } catch (IOException e) {
      // It is gone either way.
    }
  }

  private Reply read() throws IOException {
    String statusLine = line();
    if (!statusLine.startsWith("HTTP/1.1 ") || statusLine.length() < 12) {
      throw new IOException("no HTTP/1.1 answer");
    }
    int status = number(statusLine.substring(9, 12), 10);
    int length = -1;
    boolean chunked = false;
    boolean close = false;
    for (String line = line(); !line.isEmpty(); line = line()) {
      if (isHeader(line, "content-length:")) {
        length = number(line.substring(15).strip(), 10);
      } else if (isHeader(line, "transfer-encoding:")) {
        chunked = true;
      } else if (isHeader(line, "connection:")) {
        close = line.substring(11).strip().equalsIgnoreCase("close");
      }
    }
    byte[] body;
    if (chunked) {
      body = chunks();
    } else if (length >= 0) {
      body = bytes(length);
    } else {
      // Up to its close; the statuses that have no body end here too, as none of them is wanted.
      return new Reply(status, status == 200 ? rest() : new byte[0]);
    }
    reusable = !close && from == to;
    return new Reply(status, body);
  }

  private static boolean isHeader(String line, String lowerCaseName) {
    return line.regionMatches(true, 0, lowerCaseName, 0, lowerCaseName.length());
  }

  private byte[] chunks() throws IOException {
    byte[] body = new byte[0];
    while (true) {
      String size = line();
      int extension = size.indexOf(';');
      int length = number(extension < 0 ? size : size.substring(0, extension).strip(), 16);
      if (length == 0) {
        while (!line().isEmpty()) {
          // Trailers mean nothing here.
        }
        return body;
      }
      checkLength((long) body.length + length);
      byte[] chunk = bytes(length);
      int end = body.length;
      body = Arrays.copyOf(body, end + length);
      System.arraycopy(chunk, 0, body, end, length);
      if (!line().isEmpty()) {
        throw new IOException("chunk longer than it says");
      }
    }
  }

  private byte[] bytes(int length) throws IOException {
    checkLength(length);
    byte[] body = new byte[length];
    int done = Math.min(length, to - from);
    System.arraycopy(buffer, from, body, 0, done);
    from += done;
    while (done < length) {
      socket.setSoTimeout(remainingMs());
      int count = in.read(body, done, length - done);
      if (count < 0) {
        throw new EOFException("closed within the body");
      }
      done += count;
    }
    return body;
  }

  private byte[] rest() throws IOException {
    byte[] body = Arrays.copyOfRange(buffer, from, to);
    from = to;
    try {
      while (true) {
        fill();
        checkLength((long) body.length + to - from);
        int end = body.length;
        body = Arrays.copyOf(body, end + to - from);
        System.arraycopy(buffer, from, body, end, to - from);
        from = to;
      }
    } catch (EOFException e) {
      return body;
    }
  }

  /** Reads a line of the head without its end. */
  private String line() throws IOException {
    int scan = from;
    while (true) {
      for (; scan < to; scan++) {
        if (buffer[scan] == '\n') {
          int end = scan > from && buffer[scan - 1] == '\r' ? scan - 1 : scan;
          String line = new String(buffer, from, end - from, ISO_8859_1);
          from = scan + 1;
          return line;
        }
      }
      int read = scan - from;
      fill();
      scan = from + read;
    }
  }

  /** Adds at least one byte to the buffer, keeping what is unread. */
  private void fill() throws IOException {
    if (from == to) {
      from = 0;
      to = 0;
    } else if (to == buffer.length) {
      if (to - from > MAX_HEAD_BYTES) {
        throw new IOException("line too long");
      }
      byte[] wider = from == 0 ? new byte[2 * buffer.length] : buffer;
      System.arraycopy(buffer, from, wider, 0, to - from);
      buffer = wider;
      to -= from;
      from = 0;
    }
    socket.setSoTimeout(remainingMs());
    int count = in.read(buffer, to, buffer.length - to);
    if (count < 0) {
      throw new EOFException("closed by the downstream");
    }
    to += count;
  }

  private int remainingMs() throws SocketTimeoutException {
    long remaining = (deadlineNanos - System.nanoTime() + 999_999) / 1_000_000;
    if (remaining <= 0) {
      throw new SocketTimeoutException("deadline");
    }
    return (int) Math.min(remaining, Integer.MAX_VALUE);
  }

  private static void checkLength(long length) throws IOException {
    if (length > MAX_BODY_BYTES) {
      throw new IOException("answer too long");
    }
  }

  private static int number(String text, int radix) throws IOException {
    try {
      int number = Integer.parseInt(text, radix);
      if (number >= 0) {
        return number;
      }
    } catch (NumberFormatException e) {
      // Falls through to the same refusal.
    }
    throw new IOException("not a number: " + text);
  }
}
