package lab.structured;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.StructuredTaskScope;
import java.util.concurrent.StructuredTaskScope.Joiner;
import java.util.concurrent.StructuredTaskScope.Subtask;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import lab.observe.BranchMetrics;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.Bodies;
import lab.spec.LineFile;
import lab.spec.LineFile.Reading;
import lab.spec.Route;
import lab.spec.RouteCall;
import lab.work.blocking.Demonstrations;

/**
 * The routes that do several things at once, by structured concurrency (JEP 505, a preview of JDK
 * 25), but one. A scope is left only when all its branches have ended, so no branch outlives its
 * request. The branches run on virtual threads in every lane: what a lane chooses is the thread of
 * the request.
 */
final class Aggregates implements Demonstrations {
  /** The branch of {@code /first-success} that never succeeds. */
  private static final class BrokenBranchException extends Exception {
    private static final long serialVersionUID = 1;

    BrokenBranchException() {
      super("broken on purpose", null, false, false);
    }
  }

  /** A scope's pauses; {@link #close}, after the scope's, counts those never begun as cancelled. */
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

  private final BranchMetrics branches;
  private final LineFile file;
  private final ThreadFactory threads;
  private final Executor oldWay;

  /** The factory makes the threads of the branches. */
  Aggregates(BranchMetrics branches, LineFile file, ThreadFactory threads) {
    this.branches = branches;
    this.file = file;
    this.threads = threads;
    this.oldWay = task -> threads.newThread(task).start();
  }

  static Demonstrations of(ModelContext context) {
    return new Aggregates(
        new BranchMetrics(context.registry()),
        context.file(),
        Thread.ofVirtual().name("vt-branch-", 1).factory());
  }

  @Override
  public Answer answer(RouteCall call) throws InterruptedException {
    return switch (call.route()) {
      case AGGREGATE -> aggregate(call.value("wait_ms"), call.value("lines"));
      case AGGREGATE_OLD -> aggregateOld(call.value("wait_ms"), call.value("lines"));
      case FIRST_SUCCESS -> firstSuccess(call.value("fast_ms"), call.value("slow_ms"));
      case AGGREGATE_WITH_FALLBACK ->
          aggregateWithFallback(
              call.value("wait_ms"), call.value("timeout_ms"), call.value("lines"));
      case MULTI_AGGREGATE -> multiAggregate(call.value("branches"), call.value("wait_ms"));
      default -> throw new IllegalArgumentException(call.route().path());
    };
  }

  /** A wait and a file at once; takes as long as the slower. */
  private Answer aggregate(int waitMs, int lines) throws InterruptedException {
    try (var scope = open(Joiner.<Object>awaitAllSuccessfulOrThrow())) {
      Subtask<Integer> wait = scope.fork(() -> pause(Route.AGGREGATE, waitMs));
      Subtask<Reading> reading = scope.fork(() -> read(Route.AGGREGATE, lines));
      scope.join();
      return Bodies.aggregate(wait.get(), reading.get());
    }
  }

  /**
   * The same before structured concurrency. It runs on the same kind of threads, as the common pool
   * has one per CPU and would let most requests queue; what is missing is that nobody stops the
   * other branch when one fails, or when the request itself is told to stop.
   */
  private Answer aggregateOld(int waitMs, int lines) throws InterruptedException {
    CompletableFuture<Integer> wait =
        CompletableFuture.supplyAsync(
            () -> {
              try {
                return pause(Route.AGGREGATE_OLD, waitMs);
              } catch (InterruptedException e) {
                throw new CompletionException(e);
              }
            },
            oldWay);
    CompletableFuture<Reading> reading =
        CompletableFuture.supplyAsync(() -> read(Route.AGGREGATE_OLD, lines), oldWay);
    try {
      return wait.thenCombine(reading, Bodies::aggregate).get();
    } catch (ExecutionException e) {
      throw new IllegalStateException(e.getCause());
    }
  }

  /** The first of three branches that succeeds: one fails at once, the slower is cancelled. */
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

  /** A file and a wait at once; a wait longer than its time is cancelled and stood in for. */
  Answer aggregateWithFallback(int waitMs, int timeoutMs, int lines) throws InterruptedException {
    try (var scope = open(Joiner.<Object>awaitAllSuccessfulOrThrow())) {
      Subtask<Boolean> wait = scope.fork(() -> endsInTime(waitMs, timeoutMs));
      Subtask<Reading> reading = scope.fork(() -> read(Route.AGGREGATE_WITH_FALLBACK, lines));
      scope.join();
      return Bodies.aggregateWithFallback(wait.get(), reading.get());
    }
  }

  /** Many waits at once; takes as long as one. */
  private Answer multiAggregate(int count, int waitMs) throws InterruptedException {
    try (var scope = open(Joiner.<Integer>allSuccessfulOrThrow())) {
      for (int i = 0; i < count; i++) {
        scope.fork(() -> pause(Route.MULTI_AGGREGATE, waitMs));
      }
      return Bodies.multiAggregate(count, scope.join().mapToLong(Subtask::get).sum());
    }
  }

  /** One branch: a wait, counted however it ends. */
  private int pause(Route route, int waitMs) throws InterruptedException {
    try {
      Thread.sleep(waitMs);
    } catch (InterruptedException e) {
      branches.cancelled(route);
      throw e;
    }
    branches.ok(route);
    return waitMs;
  }

  /** One branch: the file, counted however it ends. */
  private Reading read(Route route, int lines) {
    try {
      Reading reading = file.read(lines);
      branches.ok(route);
      return reading;
    } catch (IOException e) {
      branches.failed(route);
      throw new UncheckedIOException(e);
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
