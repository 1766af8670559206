package lab.work.blocking;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import lab.wire.AnswerReader;
import lab.wire.HeaderFields;
import lab.wire.MalformedException;
import lab.wire.ReadBuffer;
import org.jspecify.annotations.Nullable;

/**
 * A kept-alive HTTP/1.1 connection to the downstream, used by one thread at a time. At the deadline
 * the watchdog closes its socket.
 *
 * <pre>
 *   idle --send--&gt; asked --first byte--&gt; answering --end--&gt; idle
 *                    |                         '--- no framing, "close" --&gt; closed
 *                    '-- closed before the first byte: {@link StaleException} if it was used before
 * </pre>
 */
final class DownstreamConnection extends Watchdog.Watched implements AutoCloseable {
  /** The peer had closed an idle connection: nothing was answered, so another one may be tried. */
  static final class StaleException extends IOException {
    private static final long serialVersionUID = 1;
  }

  private static final int FIRST_BYTES = 1024;

  /** The most that it reads into, even if answers are longer. */
  private static final int MOST_BYTES = 16 << 10;

  private final SocketClient.Share share;
  private final InetSocketAddress downstream;
  private final Socket socket = new Socket();

  private final ReadBuffer buffer = new ReadBuffer(FIRST_BYTES, MOST_BYTES);
  private final AnswerReader answer = new AnswerReader(new HeaderFields());
  private boolean usedBefore;

  /** Whether the last exchange left it fit for another. */
  private boolean reusable;

  private long idleSinceNanos;

  /** A connection that connects when it is first used. */
  DownstreamConnection(SocketClient.Share share, InetSocketAddress downstream) {
    this.share = share;
    this.downstream = downstream;
  }

  /** Returns the body of a 200, null of any other status. The first time it connects before. */
  byte @Nullable [] exchange(byte[] request, long deadlineNanos) throws IOException {
    Watchdog watchdog = share.watchdog();
    reusable = false;
    watchdog.watch(this, deadlineNanos);
    try {
      if (!usedBefore) {
        socket.setTcpNoDelay(true);
        socket.connect(downstream);
      }
      return ask(request);
    } catch (IOException e) {
      throw watchdog.forget(this) ? new SocketTimeoutException("deadline") : e;
    } finally {
      reusable &= !watchdog.forget(this);
    }
  }

  /** Gives it back to its share, or closes it. */
  void giveBack() {
    if (reusable) {
      idleSinceNanos = System.nanoTime();
      share.idle().addFirst(this);
    } else {
      close();
    }
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

  private byte @Nullable [] ask(byte[] request) throws IOException {
    int count;
    try {
      socket.getOutputStream().write(request);
      count = read();
      if (count < 0) {
        throw new EOFException("closed by the downstream");
      }
    } catch (IOException e) {
      throw usedBefore ? new StaleException() : e;
    }
    readAnswer(count);
    byte[] body = answer.status() == 200 ? answer.body() : null;
    reusable = answer.isConnectionReusable();
    answer.forget();
    buffer.end();
    usedBefore = true;
    return body;
  }

  /** Reads to the end of an answer, of which the first bytes are in the buffer. */
  private void readAnswer(int firstCount) throws IOException {
    try {
      int count = firstCount;
      while (!answer.take(buffer.bytes(), 0, count)) {
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
    int count = socket.getInputStream().read(buffer.next());
    buffer.took(count);
    return count;
  }

  @Override
  protected void breakOff() {
    close();
  }
}
