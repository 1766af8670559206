package lab.eventloop;

import java.util.function.Consumer;
import lab.contract.Answer;
import lab.contract.Outcome;
import lab.contract.RequestMetrics;
import lab.contract.RouteCall;

/** One request from its last byte to its answer's: there is none while a connection is idle. */
final class Exchange implements Consumer<Answer> {
  private final Connection connection;
  private final RouteCall call;
  private final boolean http11;
  private final boolean keepAlive;
  private final boolean answerHasBody;
  private final long receivedNanos;
  private long begunNanos;

  /**
   * @param receivedNanos since when the request's last bytes have been there, about
   */
  Exchange(
      Connection connection,
      RouteCall call,
      boolean http11,
      boolean keepAlive,
      boolean answerHasBody,
      long receivedNanos) {
    this.connection = connection;
    this.call = call;
    this.http11 = http11;
    this.keepAlive = keepAlive;
    this.answerHasBody = answerHasBody;
    this.receivedNanos = receivedNanos;
  }

  RouteCall call() {
    return call;
  }

  boolean keepAlive() {
    return keepAlive;
  }

  /** The header that says that the connection stays, which goes without saying in HTTP/1.1. */
  String connectionHeader() {
    return http11 ? "" : "keep-alive";
  }

  boolean answerHasBody() {
    return answerHasBody;
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
