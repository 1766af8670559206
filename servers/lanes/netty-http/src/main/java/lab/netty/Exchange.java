package lab.netty;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.RejectedExecutionException;
import lab.spec.Answer;
import lab.spec.Outcome;
import lab.spec.RouteCall;

/** A request and the way to answer it. Its calls follow each other, whatever their threads. */
public final class Exchange {
  private static final Logger LOG = System.getLogger(Exchange.class.getName());

  private final NettyHttp server;
  private final Connection connection;
  private final RouteCall call;
  private final long receivedNanos;
  private long begunNanos;

  /** From when another thread had its answer until its loop wrote it. */
  private long unwrittenNanos;

  /** Of a request that has been there since then, about, by {@link System#nanoTime}. */
  Exchange(NettyHttp server, Connection connection, RouteCall call, long receivedNanos) {
    this.server = server;
    this.connection = connection;
    this.call = call;
    this.receivedNanos = receivedNanos;
  }

  public RouteCall call() {
    return call;
  }

  /** The connection's event loop. */
  public Loop loop() {
    return connection.loop();
  }

  /** The work begins: what went before was waiting, the phase {@code queue}. Any thread, once. */
  public void begin() {
    begunNanos = System.nanoTime();
    server.metrics.begun(call.route());
  }

  /** Answers. Any thread, once, after {@link #begin}; does not block. */
  public void answer(Answer answer) {
    // Before the client has its answer: its next request finds this one's place free.
    server.admission.leave();
    if (loop().inEventLoop()) {
      connection.write(this, answer);
      return;
    }
    long answeredNanos = System.nanoTime();
    try {
      loop()
          .execute(
              () -> {
                unwrittenNanos = System.nanoTime() - answeredNanos;
                connection.write(this, answer);
              });
    } catch (RejectedExecutionException e) {
      // The server's grace is over and its loops have ended.
      end(Outcome.ABORTED);
    }
  }

  /** Gives up without an answer, as the server is being stopped. Any thread, instead of it. */
  public void abort() {
    server.admission.leave();
    end(Outcome.ABORTED);
    connection.close();
  }

  /** Gives it to the model, or refuses it. Its loop. */
  void handle() {
    if (!server.admission.tryEnter()) {
      begin();
      connection.write(this, Answer.QUEUE_FULL);
      return;
    }
    try {
      server.handler.handle(this);
    } catch (RuntimeException | Error e) {
      LOG.log(Level.ERROR, "a bug: " + call.route().path() + " failed", e);
      if (begunNanos == 0) {
        begin();
      }
      answer(Answer.INTERNAL_ERROR);
    }
  }

  /** The answer is written, or never will be. What it waited for its loop is {@code queue}, too. */
  void end(Outcome outcome) {
    long queueNanos = begunNanos - receivedNanos + unwrittenNanos;
    long serviceNanos = System.nanoTime() - receivedNanos - queueNanos;
    server.metrics.ended(call.route(), outcome, queueNanos, serviceNanos);
  }
}
