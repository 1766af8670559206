package lab.contract.blocking;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import lab.contract.downstream.AnswerReader;
import lab.contract.http.HeaderFields;
import lab.contract.http.MalformedException;

/**
 * One kept-alive HTTP/1.1 connection to the downstream, used by one thread at a time. Reads block;
 * all of them together keep one deadline.
 *
 * <pre>
 *   idle --send--&gt; asked --first byte--&gt; answering --end--&gt; idle
 *                    |                         '--- no framing, "close" --&gt; closed
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

  private static final int BUFFER_BYTES = 1024;

  private final Socket socket = new Socket();
  private final InputStream in;
  private final OutputStream out;
  private final byte[] buffer = new byte[BUFFER_BYTES];
  private final AnswerReader answer = new AnswerReader(new HeaderFields());
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
    int count;
    try {
      out.write(request);
      count = read();
      if (count < 0) {
        throw new EOFException("closed by the downstream");
      }
    } catch (SocketTimeoutException e) {
      throw e;
    } catch (IOException e) {
      throw usedBefore ? new StaleException() : e;
    }
    readAnswer(count);
    Reply reply = new Reply(answer.status(), answer.body());
    reusable = answer.isConnectionReusable();
    answer.forget();
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

  /** Reads to the end of an answer, of which the first bytes are in the buffer. */
  private void readAnswer(int firstCount) throws IOException {
    try {
      int count = firstCount;
      while (!answer.take(buffer, 0, count)) {
        count = read();
        if (count < 0) {
          if (answer.endsWithClose()) {
            return;
          }
          throw new EOFException("closed within the answer");
        }
      }
    } catch (MalformedException e) {
      throw new IOException(e);
    }
  }

  private int read() throws IOException {
    socket.setSoTimeout(remainingMs());
    return in.read(buffer);
  }

  private int remainingMs() throws SocketTimeoutException {
    long remaining = (deadlineNanos - System.nanoTime() + 999_999) / 1_000_000;
    if (remaining <= 0) {
      throw new SocketTimeoutException("deadline");
    }
    return (int) Math.min(remaining, Integer.MAX_VALUE);
  }
}
