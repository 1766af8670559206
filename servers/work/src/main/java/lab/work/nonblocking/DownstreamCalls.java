package lab.work.nonblocking;

import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BiConsumer;
import lab.observe.DownstreamMetrics;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.DownstreamOutcome;
import lab.work.ConnectionCap;
import lab.work.DownstreamLimits;
import org.jspecify.annotations.Nullable;

/**
 * Calls the downstream through a framework's own client, by the rules of every model: the number of
 * calls at a time is limited, the others wait their turn, and one deadline holds for waiting and
 * calling. Any thread; no call blocks.
 */
public final class DownstreamCalls {
  /** A framework's client. Its own limit on connections must be higher than the lab's. */
  public interface Client {
    /** Asks for the body of a 200, to be read in the time that remains; anything else fails. */
    CompletionStage<byte[]> get(Duration remaining);

    /** What a failure of {@link #get} means. */
    default DownstreamOutcome outcomeOf(Throwable failure) {
      for (Throwable each = failure; each != null; each = each.getCause()) {
        if (each instanceof TimeoutException || each instanceof SocketTimeoutException) {
          return DownstreamOutcome.TIMEOUT;
        }
        if (each instanceof ConnectException failed) {
          return DownstreamOutcome.ofConnect(failed);
        }
      }
      return DownstreamOutcome.ERROR;
    }
  }

  private final Client client;
  private final DownstreamMetrics metrics;
  private final DownstreamLimits limits;

  public DownstreamCalls(ModelContext context, Client client) {
    this.client = client;
    metrics = context.downstream();
    limits = DownstreamLimits.publish(context);
  }

  /**
   * Begins a call. The answer is the downstream's body or what stands for its failure; it never
   * fails, and comes on whichever thread ended it: the client's, a timer's, or this one.
   */
  public CompletableFuture<Answer> call() {
    Call call = new Call(limits.timeoutNanos());
    call.start();
    return call.answer;
  }

  private final class Call extends ConnectionCap.Waiter {
    private final CompletableFuture<Answer> answer = new CompletableFuture<>();
    private final CompletableFuture<@Nullable Void> late = new CompletableFuture<>();
    private final long askedNanos = System.nanoTime();
    private final long timeoutNanos;

    Call(long timeoutNanos) {
      this.timeoutNanos = timeoutNanos;
    }

    void start() {
      if (limits.cap().enter(this)) {
        granted();
      } else {
        var unused =
            late.completeOnTimeout(null, timeoutNanos, TimeUnit.NANOSECONDS).thenRun(this::tooLate);
      }
    }

    @Override
    protected void granted() {
      // Takes its timer with it. To cancel would make an exception, and walk the framework's whole
      // stack for its trace, on every call.
      late.complete(null);
      long begunNanos = System.nanoTime();
      CompletableFuture<byte[]> asked = ask(askedNanos + timeoutNanos - begunNanos);
      BiConsumer<byte @Nullable [], @Nullable Throwable> end =
          (body, failure) ->
              end(
                  failure == null ? DownstreamOutcome.OK : client.outcomeOf(unwrap(failure)),
                  begunNanos,
                  body);
      // A call's end grants its place to the next: those that end at once, as when thousands that
      // waited are late, would be one in the other on this stack.
      var unused = asked.isDone() ? asked.whenCompleteAsync(end) : asked.whenComplete(end);
    }

    private CompletableFuture<byte[]> ask(long remainingNanos) {
      if (remainingNanos <= 0) {
        return CompletableFuture.failedFuture(new TimeoutException());
      }
      try {
        return client.get(Duration.ofNanos(remainingNanos)).toCompletableFuture();
      } catch (RuntimeException e) {
        return CompletableFuture.failedFuture(e);
      }
    }

    private void tooLate() {
      if (limits.cap().giveUp(this)) {
        metrics.neverBegun(DownstreamOutcome.TIMEOUT, System.nanoTime() - askedNanos);
        answer.complete(Answer.downstreamFailed(DownstreamOutcome.TIMEOUT));
      }
    }

    private void end(DownstreamOutcome outcome, long begunNanos, byte @Nullable [] body) {
      metrics.ended(outcome, begunNanos - askedNanos, System.nanoTime() - begunNanos);
      // The next call begins on this thread: not before this one is answered.
      try {
        complete(outcome, body);
      } finally {
        limits.cap().leave();
      }
    }

    private void complete(DownstreamOutcome outcome, byte @Nullable [] body) {
      answer.complete(
          outcome == DownstreamOutcome.OK && body != null
              ? Answer.ok(body)
              : Answer.downstreamFailed(outcome));
    }
  }

  private static Throwable unwrap(Throwable failure) {
    Throwable cause = failure.getCause();
    return failure instanceof CompletionException && cause != null ? cause : failure;
  }
}
