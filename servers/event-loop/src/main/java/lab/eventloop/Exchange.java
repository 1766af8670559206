package lab.eventloop;

import java.util.function.Consumer;
import lab.contract.Answer;
import lab.contract.Outcome;
import lab.contract.RequestMetrics;
import lab.contract.RouteCall;
import lab.wire.Request;

/** One request from its last byte to its answer's: there is none while a connection is idle. */
final class Exchange implements Consumer<Answer> {
  private final Connection connection;
  private final Request request;
  private final RouteCall call;
  private final long receivedNanos;
  private long begunNanos;

  /**
   * @param receivedNanos since when the request's last bytes have been there, about
   */
  Exchange(Connection connection, Request request, RouteCall call, long receivedNanos) {
    this.connection = connection;
    this.request = request;
    this.call = call;
    this.receivedNanos = receivedNanos;
  }

  Request request() {
    return request;
  }

  RouteCall call() {
    return call;
  }

  void begin(RequestMetrics metrics, long nowNanos) {
    begunNanos = nowNanos;
    metrics.begun(call.route());
  }

  /** The answer is there, perhaps too late. */
  @Override
  public void accept(Answer answer) {
    connection.answer(this, answer);
  }

  /** The answer is written, or never will be. */
  void end(RequestMetrics metrics, Outcome outcome, long nowNanos) {
    metrics.ended(call.route(), outcome, begunNanos - receivedNanos, nowNanos - begunNanos);
  }
}
