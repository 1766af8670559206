package lab.perconnection;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import lab.contract.Answer;
import lab.contract.Outcome;
import lab.contract.RouteCall;
import lab.contract.http.ChunkedBody;
import lab.contract.http.HttpBytes;
import lab.contract.http.MalformedException;
import lab.contract.serving.AnswerHead;
import lab.contract.serving.Refusals;
import lab.contract.serving.RequestHead;

/**
 * A client's connection, served by one thread for as long as it lives. That thread's place in the
 * code is the connection's state; the phase only tells others whether they may close it.
 *
 * <pre>
 *   RECEIVING --whole request--&gt; WORKING --answer--&gt; WRITING --all written--&gt; RECEIVING
 *       |                                               |
 *       '-- kept waiting for too long, or stopping --&gt; CLOSED &lt;-- kept waiting for too long
 * </pre>
 */
final class Connection implements Runnable {
  private enum Phase {
    RECEIVING,
    WORKING,
    WRITING,
    CLOSED
  }

  private static final Logger LOG = System.getLogger(Connection.class.getName());

  /** What an idle connection keeps to read into: an ordinary request. */
  private static final int USUAL_BYTES = 512;

  private static final byte[] NOTHING = new byte[0];
  private static final long LINGER_NANOS = 1_000_000_000;
  private static final int LINGER_BYTES = 1 << 20;

  private final ConnectionServer server;
  private final Socket socket;
  private final InputStream in;
  private final OutputStream out;
  private final RequestHead head;

  /** Input not used yet, from {@link #from} to {@link #to}. */
  private byte[] input = new byte[USUAL_BYTES];

  private int from;
  private int to;

  private Phase phase = Phase.RECEIVING;
  private long phaseSinceNanos = System.nanoTime();

  Connection(ConnectionServer server, Socket socket) throws IOException {
    this.server = server;
    this.socket = socket;
    this.in = socket.getInputStream();
    this.out = socket.getOutputStream();
    this.head = new RequestHead(server.targets());
  }

  // --- from any thread -------------------------------------------------------------------------

  /** Closes it if it has waited for its client since before then. */
  synchronized void closeIfKeptWaitingSince(long nanos) {
    if (phase != Phase.WORKING && phaseSinceNanos - nanos < 0) {
      close();
    }
  }

  /** Closes it unless a whole request is there that has not been answered. */
  synchronized void closeIfReceiving() {
    if (phase == Phase.RECEIVING) {
      close();
    }
  }

  synchronized void close() {
    phase = Phase.CLOSED;
    try {
      socket.close();
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "a connection could not be closed", e);
    }
  }

  // --- its thread ------------------------------------------------------------------------------

  @Override
  public void run() {
    try {
      serve();
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "the client was gone, or kept the server waiting", e);
    } finally {
      close();
      server.closed(this);
    }
  }

  private void serve() throws IOException {
    boolean refused = false;
    try {
      boolean stays = true;
      while (stays && receive()) {
        stays = work();
      }
    } catch (TooLongException e) {
      refused = true;
      refuse(Refusals.HEAD_TOO_LONG);
    } catch (MalformedException e) {
      refused = true;
      refuse(Refusals.malformed(e));
    }
    // Closing with unread input would reset the connection and take the answer from the client.
    if (refused || from < to || in.available() > 0) {
      linger();
    }
  }

  /** Reads a request to its end; false when there will be none. */
  private boolean receive() throws IOException, MalformedException, TooLongException {
    if (!enter(Phase.RECEIVING) || server.isStopping()) {
      return false;
    }
    return receiveHead() && receiveBody() && enter(Phase.WORKING);
  }

  /** Blank lines before a request are allowed for (RFC 9112, 2.2), and begin none. */
  private void passBlankLines() {
    while (from < to && (input[from] == '\r' || input[from] == '\n')) {
      from++;
    }
  }

  private boolean receiveHead() throws IOException, MalformedException, TooLongException {
    passBlankLines();
    while (from == to) {
      if (!fillWhenIdle()) {
        return false;
      }
      passBlankLines();
    }
    int scanned = 0;
    while (true) {
      int end = HttpBytes.endOfHead(input, from + scanned, to);
      if ((end < 0 ? to : end) - from > RequestHead.MAX_BYTES) {
        throw new TooLongException();
      }
      if (end >= 0) {
        head.read(input, from);
        from = end;
        return true;
      }
      if (scanned == 0 && !enter(Phase.RECEIVING)) {
        // From its first byte on a request has its time anew.
        return false;
      }
      scanned = Math.max(0, to - from - 2);
      if (!fill()) {
        return false;
      }
    }
  }

  /** Passes over the body, as no route has use for one. */
  private boolean receiveBody() throws IOException, MalformedException {
    long left = Math.max(0, head.fields().contentLength());
    ChunkedBody chunks = head.fields().chunked() ? new ChunkedBody(null) : null;
    if (head.expectsContinue() && (left > 0 || chunks != null)) {
      out.write(AnswerHead.CONTINUE);
    }
    while (true) {
      if (chunks != null) {
        from = chunks.take(input, from, to);
        if (chunks.done()) {
          return true;
        }
      } else {
        int count = (int) Math.min(left, to - from);
        from += count;
        left -= count;
        if (left == 0) {
          return true;
        }
      }
      if (!fill()) {
        return false;
      }
    }
  }

  /** Returns whether the connection stays. */
  private boolean work() throws IOException {
    RouteCall call = head.call();
    long begunNanos = System.nanoTime();
    server.requests().begun(call.route());
    Outcome outcome = Outcome.ABORTED;
    try {
      Answer answer = answer(call);
      // With more requests at hand it would not be idle.
      passBlankLines();
      boolean mayStay = from < to || !server.hasEnoughIdle();
      boolean stays = head.keepAlive() && !server.isStopping() && mayStay;
      String usual = head.isHttp11() ? "" : "keep-alive";
      write(answer, head.answerHasBody(), stays ? usual : "close");
      outcome = answer.outcome();
      return stays;
    } catch (InterruptedException e) {
      // Stopping: the grace is over.
      Thread.currentThread().interrupt();
      return false;
    } finally {
      // Since when its bytes have been there nobody tells, so the wait for a carrier is unseen.
      server.requests().ended(call.route(), outcome, 0, System.nanoTime() - begunNanos);
    }
  }

  private Answer answer(RouteCall call) throws InterruptedException {
    try {
      return server.routes().answer(call);
    } catch (RuntimeException | Error e) {
      LOG.log(Level.ERROR, "a bug: " + call.route().path() + " failed", e);
      return Answer.INTERNAL_ERROR;
    }
  }

  private void refuse(Answer answer) throws IOException {
    server.requests().malformed();
    write(answer, true, "close");
  }

  /** Head and body in one write. */
  private void write(Answer answer, boolean withBody, String connection) throws IOException {
    if (!enter(Phase.WRITING)) {
      throw new IOException("closed");
    }
    byte[] first = server.heads().of(answer, connection);
    byte[] then = withBody ? answer.body() : NOTHING;
    byte[] all = Arrays.copyOf(first, first.length + then.length);
    System.arraycopy(then, 0, all, first.length, then.length);
    out.write(all);
  }

  private boolean fillWhenIdle() throws IOException {
    server.idleChanged(1);
    try {
      from = 0;
      to = 0;
      if (input.length > USUAL_BYTES) {
        input = new byte[USUAL_BYTES];
      }
      return fill();
    } finally {
      server.idleChanged(-1);
    }
  }

  /** Waits for more input; false at its end. */
  private boolean fill() throws IOException {
    if (from == to) {
      from = 0;
      to = 0;
    } else if (to == input.length) {
      int unused = to - from;
      byte[] next = unused > input.length / 2 ? new byte[2 * input.length] : input;
      System.arraycopy(input, from, next, 0, unused);
      input = next;
      from = 0;
      to = unused;
    }
    int count = in.read(input, to, input.length - to);
    to += Math.max(0, count);
    return count >= 0;
  }

  /** Reads on for a while after the last answer. */
  private void linger() throws IOException {
    socket.shutdownOutput();
    long end = System.nanoTime() + LINGER_NANOS;
    int left = LINGER_BYTES;
    byte[] passedOver = new byte[4096];
    try {
      for (int count = 0; count >= 0 && left > 0; left -= count) {
        long millis = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
        if (millis <= 0) {
          return;
        }
        socket.setSoTimeout((int) millis);
        count = in.read(passedOver);
      }
    } catch (SocketTimeoutException e) {
      // It had its time.
    }
  }

  /** Goes on to a phase; false when it has been closed. */
  private synchronized boolean enter(Phase next) {
    if (phase == Phase.CLOSED) {
      return false;
    }
    phase = next;
    phaseSinceNanos = System.nanoTime();
    return true;
  }

  /** The head has no end within its limit. */
  private static final class TooLongException extends Exception {
    private static final long serialVersionUID = 1;

    TooLongException() {
      super(null, null, false, false);
    }
  }
}
