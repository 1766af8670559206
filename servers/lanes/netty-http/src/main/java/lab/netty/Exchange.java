package lab.netty;

import io.netty.channel.EventLoop;
import lab.observe.RequestMetrics;
import lab.spec.Answer;
import lab.spec.Outcome;
import lab.spec.RouteCall;

/**
 * One request and the way to answer it. Its calls come one after the other, whatever their threads.
 */
public final class Exchange {
  private final Connection connection;
  private final RouteCall call;
  private final boolean keepAlive;
  private final boolean http10;
  private final boolean head;
  private final long receivedNanos;
  private boolean admitted;
  private long begunNanos;

  /** When its answer was handed to the loop by another thread; 0: it was not. */
  private long handedBackNanos;

  private long waitedForLoopNanos;

  /**
   * @param receivedNanos since when the request has been there, about, by {@link System#nanoTime}
   */
  Exchange(
      Connection connection,
      RouteCall call,
      boolean keepAlive,
      boolean http10,
      boolean head,
      long receivedNanos) {
    this.connection = connection;
    this.call = call;
    this.keepAlive = keepAlive;
    this.http10 = http10;
    this.head = head;
    this.receivedNanos = receivedNanos;
  }

  public RouteCall call() {
    return call;
  }

  /** The connection's event loop. */
  public EventLoop loop() {
    return connection.loop();
  }

  /** The work begins: what went before was waiting, the phase {@code queue}. Any thread, once. */
  public void begin() {
    begunNanos = System.nanoTime();
    connection.metrics().begun(call.route());
  }

  /** Answers. Any thread, once, after {@link #begin}; does not block. */
  public void answer(Answer answer) {
    connection.answer(this, answer);
  }

  /** Gives up without an answer, as the server is being stopped. Any thread, instead of it. */
  public void abort() {
    connection.abort(this);
  }

  /** It counts as one that the server has taken on. Before the model has it. */
  void admitted() {
    admitted = true;
  }

  boolean isAdmitted() {
    return admitted;
  }

  /** Says that the work went wrong, begun or not. */
  void fail() {
    if (begunNanos == 0) {
      begin();
    }
    answer(Answer.INTERNAL_ERROR);
  }

  /** Its answer is there, and the loop may be at other work. */
  void handedBack() {
    handedBackNanos = System.nanoTime();
  }

  /** The loop writes it now. */
  void written() {
    if (handedBackNanos != 0) {
      waitedForLoopNanos = System.nanoTime() - handedBackNanos;
    }
  }

  /**
   * The answer is written, or never will be. What it waited for its loop counts as {@code queue}.
   */
  void ended(RequestMetrics metrics, Outcome outcome) {
    long queueNanos = begunNanos - receivedNanos + waitedForLoopNanos;
    metrics.ended(
        call.route(), outcome, queueNanos, System.nanoTime() - receivedNanos - queueNanos);
  }

  /** Whether the method is HEAD: its answer has no body. */
  boolean isHead() {
    return head;
  }

  /** Whether the client has to be told that its connection is kept. */
  boolean isHttp10() {
    return http10;
  }

  boolean keepAlive() {
    return keepAlive;
  }
}
