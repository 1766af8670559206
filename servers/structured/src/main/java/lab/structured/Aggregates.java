package lab.structured;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.StructuredTaskScope;
import java.util.concurrent.StructuredTaskScope.Joiner;
import java.util.concurrent.StructuredTaskScope.Subtask;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.Bodies;
import lab.spec.LineFile;
import lab.spec.LineFile.Reading;
import lab.spec.RouteCall;
import lab.work.blocking.Demonstrations;

/**
 * The routes that do several things at once, by structured concurrency (JEP 505, a preview of JDK
 * 25), but one. A scope is left only when all its branches have ended, on virtual threads.
 */
final class Aggregates implements Demonstrations {
  /** The branch of {@code /first-success} that never succeeds. */
  private static final class BrokenBranchException extends Exception {
    private static final long serialVersionUID = 1;

    BrokenBranchException() {
      super("broken on purpose", null, false, false);
    }
  }

  private final LineFile file;
  private final ThreadFactory threads;
  private final Executor oldWay;

  Aggregates(LineFile file, ThreadFactory threads) {
    this.file = file;
    this.threads = threads;
    this.oldWay = task -> threads.newThread(task).start();
  }

  static Demonstrations of(ModelContext context) {
    return new Aggregates(context.file(), Thread.ofVirtual().name("vt-branch-", 1).factory());
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
      Subtask<Integer> wait = scope.fork(() -> pause(waitMs));
      Subtask<Reading> reading = scope.fork(() -> file.read(lines));
      scope.join();
      return Bodies.aggregate(wait.get(), reading.get());
    }
  }

  /**
   * The same before structured concurrency, on the same kind of threads. Nobody stops the other
   * branch when one fails, or when the request itself is told to stop.
   */
  private Answer aggregateOld(int waitMs, int lines) throws InterruptedException {
    CompletableFuture<Integer> wait =
        CompletableFuture.supplyAsync(
            () -> {
              try {
                return pause(waitMs);
              } catch (InterruptedException e) {
                throw new CompletionException(e);
              }
            },
            oldWay);
    CompletableFuture<Reading> reading =
        CompletableFuture.supplyAsync(() -> file.read(lines), oldWay);
    try {
      return wait.thenCombine(reading, Bodies::aggregate).get();
    } catch (ExecutionException e) {
      throw new IllegalStateException(e.getCause());
    }
  }

  /** The first of three branches that succeeds: one fails at once, the slower is cancelled. */
  Answer firstSuccess(int fastMs, int slowMs) throws InterruptedException {
    AtomicInteger failed = new AtomicInteger();
    AtomicInteger ended = new AtomicInteger();
    String winner;
    try (var scope = open(Joiner.<String>anySuccessfulResultOrThrow())) {
      scope.fork(
          () -> {
            failed.incrementAndGet();
            throw new BrokenBranchException();
          });
      scope.fork(() -> pauseAs("fast", fastMs, ended));
      scope.fork(() -> pauseAs("slow", slowMs, ended));
      winner = scope.join();
    }
    // Only here have the losers ended, or never will begin.
    return Bodies.firstSuccess(winner, failed.get(), 2 - ended.get());
  }

  private static String pauseAs(String name, int waitMs, AtomicInteger ended)
      throws InterruptedException {
    int _ = pause(waitMs);
    ended.incrementAndGet();
    return name;
  }

  /** A file and a wait at once; a wait longer than its time is cancelled and stood in for. */
  Answer aggregateWithFallback(int waitMs, int timeoutMs, int lines) throws InterruptedException {
    try (var scope = open(Joiner.<Object>awaitAllSuccessfulOrThrow())) {
      Subtask<Boolean> wait = scope.fork(() -> endsInTime(waitMs, timeoutMs));
      Subtask<Reading> reading = scope.fork(() -> file.read(lines));
      scope.join();
      return Bodies.aggregateWithFallback(wait.get(), reading.get());
    }
  }

  /** Many waits at once; takes as long as one. */
  private Answer multiAggregate(int count, int waitMs) throws InterruptedException {
    try (var scope = open(Joiner.<Integer>allSuccessfulOrThrow())) {
      for (int i = 0; i < count; i++) {
        scope.fork(() -> pause(waitMs));
      }
      return Bodies.multiAggregate(count, scope.join().mapToLong(Subtask::get).sum());
    }
  }

  private static int pause(int waitMs) throws InterruptedException {
    Thread.sleep(waitMs);
    return waitMs;
  }

  private boolean endsInTime(int waitMs, int timeoutMs) throws InterruptedException {
    try (var scope =
        StructuredTaskScope.open(
            Joiner.<Integer>awaitAllSuccessfulOrThrow(),
            options ->
                options.withThreadFactory(threads).withTimeout(Duration.ofMillis(timeoutMs)))) {
      scope.fork(() -> pause(waitMs));
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
