package lab.front;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import lab.contract.Answer;
import lab.contract.Outcome;
import lab.contract.RouteCall;
import lab.wire.Request;
import org.jspecify.annotations.Nullable;

/** One whole request, from its hand-over to a worker's thread to its end. */
final class Exchange implements Runnable {
  private static final Logger LOG = System.getLogger(Exchange.class.getName());

  private final FrontServer server;
  private final Connection connection;
  private final Request request;
  private final RouteCall call;
  private final long receivedNanos;
  private long begunNanos;

  /**
   * @param receivedNanos since when the request's last bytes have been there, about
   */
  Exchange(FrontServer server, Connection connection, Request request, long receivedNanos) {
    this.server = server;
    this.connection = connection;
    this.request = request;
    this.call = server.resolve(request);
    this.receivedNanos = receivedNanos;
  }

  Request request() {
    return request;
  }

  /** Works on it, on a worker's thread. */
  @Override
  public void run() {
    begin();
    @Nullable Answer answer = null;
    boolean stays = false;
    try {
      answer = answer();
      stays = connection.staysAfter(this);
    } catch (InterruptedException e) {
      // Stopping: the grace is over, and the connection closed.
      Thread.currentThread().interrupt();
    } finally {
      // Before the client has its answer: its next request finds this one's place free.
      server.admission().leave();
    }
    if (answer == null) {
      end(Outcome.ABORTED);
    } else {
      connection.send(
          this, server.answers().write(request, answer, stays), answer.outcome(), stays);
    }
  }

  void begin() {
    begunNanos = System.nanoTime();
    server.requests().begun(call.route());
  }

  /** The answer is written, or never will be. Called once. */
  void end(Outcome outcome) {
    long now = System.nanoTime();
    server.requests().ended(call.route(), outcome, begunNanos - receivedNanos, now - begunNanos);
  }

  private Answer answer() throws InterruptedException {
    try {
      return server.routes().answer(call);
    } catch (RuntimeException | Error e) {
      LOG.log(Level.ERROR, "a bug: " + call.route().path() + " failed", e);
      return Answer.INTERNAL_ERROR;
    }
  }
}
