package lab.perconnection;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.util.concurrent.TimeUnit;
import lab.spec.Answer;
import lab.spec.Outcome;
import lab.spec.RouteCall;
import lab.wire.AnswerWriter;
import lab.wire.MalformedException;
import lab.wire.ReadBuffer;
import lab.wire.Request;
import lab.wire.RequestHead;
import lab.wire.RequestReader;
import org.jspecify.annotations.Nullable;

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
  private static final int FIRST_BYTES = 512;

  /** The most that it reads into, even if its client sends more at once. */
  private static final int MOST_BYTES = 8192;

  private static final long LINGER_NANOS = 1_000_000_000;
  private static final int LINGER_BYTES = 1 << 20;

  private final ConnectionServer server;
  private final Socket socket;
  private final InputStream in;
  private final OutputStream out;
  private final RequestReader reader = new RequestReader(new RequestHead());

  private final ReadBuffer buffer = new ReadBuffer(FIRST_BYTES, MOST_BYTES);

  private Phase phase = Phase.RECEIVING;
  private long phaseSinceNanos = System.nanoTime();

  /** Since when it is the client's turn. Its thread's. */
  private long quietSinceNanos = phaseSinceNanos;

  Connection(ConnectionServer server, Socket socket) throws IOException {
    this.server = server;
    this.socket = socket;
    this.in = socket.getInputStream();
    this.out = socket.getOutputStream();
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
      Request request = receive();
      while (request != null && work(request)) {
        request = receive();
      }
    } catch (MalformedException e) {
      refused = true;
      server.requests.malformed();
      write(server.answers.refuse(e));
    }
    // Closing with unread input would reset the connection and take the answer from the client.
    if (refused || reader.unused() > 0 || in.available() > 0) {
      linger();
    }
  }

  /** Reads a request to its end; null when there will be none. */
  private @Nullable Request receive() throws IOException, MalformedException {
    if (!enter(Phase.RECEIVING, quietSinceNanos) || server.isStopping()) {
      return null;
    }
    Request next = next();
    while (next == null) {
      boolean wasIdle = reader.isIdle();
      if (wasIdle) {
        buffer.end();
      }
      if (!fill()) {
        return null;
      }
      next = next();
      // From its first byte on a request has its time anew.
      if (wasIdle && !enter(Phase.RECEIVING)) {
        return null;
      }
    }
    return enter(Phase.WORKING) ? next : null;
  }

  private @Nullable Request next() throws IOException, MalformedException {
    Request next = reader.next();
    if (reader.takeContinue()) {
      out.write(AnswerWriter.CONTINUE);
    }
    return next;
  }

  /** Returns whether the connection stays. */
  private boolean work(Request request) throws IOException {
    RouteCall call = server.context.resolve(request.method(), request.path(), request.query());
    long begunNanos = phaseSinceNanos;
    server.requests.begun(call.route());
    Outcome outcome = Outcome.ABORTED;
    try {
      Answer answer = admitted(call);
      boolean stays = request.keepAlive() && !server.isStopping();
      write(server.answers.write(request, answer, stays));
      outcome = answer.outcome();
      return stays;
    } catch (InterruptedException e) {
      // Stopping: the grace is over.
      Thread.currentThread().interrupt();
      return false;
    } finally {
      // Since when its bytes have been there is unknown, so the wait for a carrier is unseen.
      quietSinceNanos = System.nanoTime();
      server.requests.ended(call.route(), outcome, 0, quietSinceNanos - begunNanos);
    }
  }

  /** Answers if there is a place. It is free again before the client has its answer. */
  private Answer admitted(RouteCall call) throws InterruptedException {
    if (!server.admission.tryEnter()) {
      return Answer.QUEUE_FULL;
    }
    try {
      return server.routes.answer(call);
    } finally {
      server.admission.leave();
    }
  }

  private void write(byte[] answer) throws IOException {
    if (!enter(Phase.WRITING)) {
      throw new IOException("closed");
    }
    out.write(answer);
  }

  /** Waits for more input; false at its end. */
  private boolean fill() throws IOException {
    reader.keep();
    byte[] bytes = buffer.next();
    int count = in.read(bytes);
    buffer.took(count);
    reader.add(bytes, Math.max(0, count));
    return count >= 0;
  }

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
  private boolean enter(Phase next) {
    return enter(next, System.nanoTime());
  }

  private synchronized boolean enter(Phase next, long nanos) {
    if (phase == Phase.CLOSED) {
      return false;
    }
    phase = next;
    phaseSinceNanos = nanos;
    return true;
  }
}
