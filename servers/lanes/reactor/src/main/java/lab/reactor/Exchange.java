package lab.reactor;

import lab.spec.Answer;
import lab.spec.Outcome;
import lab.spec.RouteCall;
import lab.wire.Request;

/** A whole request, until it is answered. One thread at a time: the reactor's, or a worker's. */
public final class Exchange {
  private final ReactorGroup group;
  private final Connection connection;
  private final Request request;
  private final RouteCall call;
  private final long receivedNanos;
  private long begunNanos;

  /** Of a request whose last bytes have been there since then, about. */
  Exchange(ReactorGroup group, Connection connection, Request request, long receivedNanos) {
    this.group = group;
    this.connection = connection;
    this.request = request;
    this.call = group.resolve(request);
    this.receivedNanos = receivedNanos;
  }

  Request request() {
    return request;
  }

  public RouteCall call() {
    return call;
  }

  /** The work on it begins: what it waited for that is over. Called once, before it is answered. */
  public void begin() {
    begunNanos = System.nanoTime();
    group.requests.begun(call.route());
  }

  public void answer(Answer answer) {
    boolean stays;
    byte[] bytes;
    try {
      stays = connection.staysAfter(request);
      bytes = group.answers.write(request, answer, stays);
    } catch (RuntimeException | Error e) {
      // Or its connection would wait for ever.
      abort();
      throw e;
    }
    // Before the client has its answer: its next request finds this one's place free.
    group.admission.leave();
    connection.send(this, bytes, answer.outcome(), stays);
  }

  /** Gives it up, without an answer; its connection closes. Called in place of the answer. */
  public void abort() {
    group.admission.leave();
    if (!isGone()) {
      connection.abort();
    }
    end(Outcome.ABORTED);
  }

  /** True if there is nobody to answer any more. */
  public boolean isGone() {
    return connection.isClosed();
  }

  /** The answer is written, or never will be. */
  void end(Outcome outcome) {
    end(outcome, System.nanoTime());
  }

  void end(Outcome outcome, long nanos) {
    group.requests.ended(call.route(), outcome, begunNanos - receivedNanos, nanos - begunNanos);
  }
}
