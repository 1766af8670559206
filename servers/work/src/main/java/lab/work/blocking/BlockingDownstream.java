package lab.work.blocking;

import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import lab.observe.DownstreamMetrics;
import lab.shell.ModelContext;
import lab.spec.DownstreamOutcome;
import lab.work.DownstreamLimits;

/**
 * Calls the downstream on the caller's thread, by the rules of every model: the number of calls at
 * a time is limited, the others wait their turn, and one deadline holds for waiting and calling.
 */
public final class BlockingDownstream implements AutoCloseable {
  private final DownstreamClient client;
  private final DownstreamMetrics metrics;
  private final DownstreamLimits limits;

  BlockingDownstream(ModelContext context, DownstreamClient client) {
    this.client = client;
    metrics = context.downstream();
    limits = DownstreamLimits.publish(context);
  }

  /** Returns the downstream's body; one deadline holds for waiting, connecting and reading it. */
  byte[] call() throws DownstreamException, InterruptedException {
    long timeoutNanos = limits.timeoutNanos();
    long asked = System.nanoTime();
    if (!limits.cap().enterWithin(timeoutNanos)) {
      metrics.neverBegun(DownstreamOutcome.TIMEOUT, System.nanoTime() - asked);
      throw new DownstreamException(DownstreamOutcome.TIMEOUT);
    }
    long begun = System.nanoTime();
    DownstreamOutcome outcome = DownstreamOutcome.ERROR;
    try {
      byte[] body = client.get(asked + timeoutNanos);
      outcome = DownstreamOutcome.OK;
      return body;
    } catch (IOException e) {
      outcome =
          switch (e) {
            case SocketTimeoutException late -> DownstreamOutcome.TIMEOUT;
            case ConnectException failed -> DownstreamOutcome.ofConnect(failed);
            default -> DownstreamOutcome.ERROR;
          };
      throw new DownstreamException(outcome);
    } finally {
      metrics.ended(outcome, begun - asked, System.nanoTime() - begun);
      limits.cap().leave();
    }
  }

  @Override
  public void close() {
    client.close();
  }
}
