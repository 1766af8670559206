package lab.work.blocking;

import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import lab.observe.DownstreamMetrics;
import lab.shell.ModelContext;
import lab.spec.Answer;
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

  /** Its body, or what stands for a failure; one deadline holds for waiting and calling. */
  Answer call() throws InterruptedException {
    long timeoutNanos = limits.timeoutNanos();
    long asked = System.nanoTime();
    if (!limits.cap().enterWithin(timeoutNanos)) {
      metrics.neverBegun(DownstreamOutcome.TIMEOUT, System.nanoTime() - asked);
      return Answer.downstreamFailed(DownstreamOutcome.TIMEOUT);
    }
    long begun = System.nanoTime();
    DownstreamOutcome outcome = DownstreamOutcome.ERROR;
    try {
      byte[] body = client.get(asked + timeoutNanos);
      if (body != null) {
        outcome = DownstreamOutcome.OK;
        return Answer.ok(body);
      }
    } catch (SocketTimeoutException e) {
      outcome = DownstreamOutcome.TIMEOUT;
    } catch (ConnectException e) {
      outcome = DownstreamOutcome.ofConnect(e);
    } catch (IOException e) {
      // Broken off, or no answer.
    } finally {
      metrics.ended(outcome, begun - asked, System.nanoTime() - begun);
      limits.cap().leave();
    }
    return Answer.downstreamFailed(outcome);
  }

  @Override
  public void close() {
    client.close();
  }
}
