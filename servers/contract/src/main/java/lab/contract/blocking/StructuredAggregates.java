package lab.contract.blocking;

import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.StructuredTaskScope;
import java.util.concurrent.StructuredTaskScope.Joiner;
import java.util.concurrent.StructuredTaskScope.Subtask;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import lab.contract.Answer;
import lab.contract.Bodies;
import lab.contract.LineFile.Reading;
import lab.contract.ModelContext;
import lab.contract.Route;

/**
 * The same by structured concurrency (JEP 505, a preview of JDK 25). A scope is left only when all
 * its branches have ended, so no branch outlives its request.
 */
final class StructuredAggregates extends Aggregates {
  /** The branch of {@code /first-success} that never succeeds. */
  private static final class BrokenBranchException extends Exception {
    private static final long serialVersionUID = 1;

    BrokenBranchException() {
      super("broken on purpose", null, false, false);
    }
  }

  /**
   * The cancellable pauses of one scope. A cancelled scope starts no more branches, so {@link
   * #close}, called after the scope is closed, counts those that never began as cancelled.
   */
  private final class Pauses implements AutoCloseable {
    private final Route route;
    private final AtomicInteger interrupted = new AtomicInteger();
    private final AtomicInteger notBegun = new AtomicInteger();

    Pauses(Route route) {
      this.route = route;
    }

    /** A branch that pauses and returns its name. Called by the scope's owner. */
    Callable<String> branch(String name, int waitMs) {
      notBegun.incrementAndGet();
      return () -> {
        notBegun.decrementAndGet();
        try {
          int _ = pause(route, waitMs);
          return name;
        } catch (InterruptedException e) {
          interrupted.incrementAndGet();
          throw e;
        }
      };
    }

    /** The number of cancelled pauses, begun or not, once the scope is closed. */
    int cancelled() {
      return interrupted.get() + notBegun.get();
    }

    @Override
    public void close() {
      for (int i = notBegun.get(); i > 0; i--) {
        branches.cancelled(route);
      }
    }
  }

  StructuredAggregates(ModelContext context, ThreadFactory threads) {
    super(context, threads);
  }

  @Override
  Answer aggregate(int waitMs, int lines) throws InterruptedException {
    try (var scope = open(Joiner.<Object>awaitAllSuccessfulOrThrow())) {
      Subtask<Integer> wait = scope.fork(() -> pause(Route.AGGREGATE, waitMs));
      Subtask<Reading> reading = scope.fork(() -> read(Route.AGGREGATE, lines));
      scope.join();
      return Bodies.aggregate(wait.get(), reading.get());
    }
  }

  @Override
  Answer firstSuccess(int fastMs, int slowMs) throws InterruptedException {
    AtomicInteger failed = new AtomicInteger();
    String winner;
    Pauses pauses = new Pauses(Route.FIRST_SUCCESS);
    try (pauses;
        var scope = open(Joiner.<String>anySuccessfulResultOrThrow())) {
      scope.fork(
          () -> {
            failed.incrementAndGet();
            branches.failed(Route.FIRST_SUCCESS);
            throw new BrokenBranchException();
          });
      scope.fork(pauses.branch("fast", fastMs));
      scope.fork(pauses.branch("slow", slowMs));
      winner = scope.join();
    }
    // Only here have the losers ended.
    return Bodies.firstSuccess(winner, failed.get(), pauses.cancelled());
  }

  @Override
  Answer aggregateWithFallback(int waitMs, int timeoutMs, int lines) throws InterruptedException {
    try (var scope = open(Joiner.<Object>awaitAllSuccessfulOrThrow())) {
      Subtask<Boolean> wait = scope.fork(() -> endsInTime(waitMs, timeoutMs));
      Subtask<Reading> reading = scope.fork(() -> read(Route.AGGREGATE_WITH_FALLBACK, lines));
      scope.join();
      return Bodies.aggregateWithFallback(wait.get(), reading.get());
    }
  }

  @Override
  Answer multiAggregate(int count, int waitMs) throws InterruptedException {
    try (var scope = open(Joiner.<Integer>allSuccessfulOrThrow())) {
      for (int i = 0; i < count; i++) {
        scope.fork(() -> pause(Route.MULTI_AGGREGATE, waitMs));
      }
      return Bodies.multiAggregate(count, scope.join().mapToLong(Subtask::get).sum());
    }
  }

  private boolean endsInTime(int waitMs, int timeoutMs) throws InterruptedException {
    Pauses pauses = new Pauses(Route.AGGREGATE_WITH_FALLBACK);
    try (pauses;
        var scope =
            StructuredTaskScope.open(
                Joiner.<String>awaitAllSuccessfulOrThrow(),
                options ->
                    options.withThreadFactory(threads).withTimeout(Duration.ofMillis(timeoutMs)))) {
      scope.fork(pauses.branch("wait", waitMs));
      scope.join();
      return true;
    } catch (StructuredTaskScope.TimeoutException e) {
      return false;
    }
  }

  private <T, R> StructuredTaskScope<T, R> open(Joiner<T, R> joiner) {
    return StructuredTaskScope.open(joiner, options -> options.withThreadFactory(threads));
  }
}
