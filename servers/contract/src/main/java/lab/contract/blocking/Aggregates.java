package lab.contract.blocking;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadFactory;
import lab.contract.Answer;
import lab.contract.Bodies;
import lab.contract.BranchMetrics;
import lab.contract.LineFile;
import lab.contract.LineFile.Reading;
import lab.contract.ModelContext;
import lab.contract.Route;

/**
 * The routes that do several things at once. Their branches run on virtual threads in every
 * blocking model: what a model chooses is the thread of the request. All but the old way take
 * structured concurrency, which is in {@link StructuredAggregates}, compiled for JDK 25 alone: an
 * older JDK never loads that class, and answers that it cannot.
 */
class Aggregates {
  private static final int STRUCTURED_SINCE = 25;
  private static final Answer NOT_HERE =
      Answer.error(501, "structured concurrency needs JDK " + STRUCTURED_SINCE);

  final BranchMetrics branches;
  final ThreadFactory threads;
  private final LineFile file;
  private final Executor oldWay;

  /**
   * @param threads makes the threads of the branches
   */
  Aggregates(ModelContext context, ThreadFactory threads) {
    this.file = context.file();
    this.branches = context.branches();
    this.threads = threads;
    this.oldWay = task -> threads.newThread(task).start();
  }

  /** All that this JDK can do of it. */
  static Aggregates of(ModelContext context) {
    ThreadFactory threads = Thread.ofVirtual().name("vt-branch-", 1).factory();
    if (Runtime.version().feature() < STRUCTURED_SINCE) {
      return new Aggregates(context, threads);
    }
    try {
      return Class.forName(Aggregates.class.getPackageName() + ".StructuredAggregates")
          .asSubclass(Aggregates.class)
          .getDeclaredConstructor(ModelContext.class, ThreadFactory.class)
          .newInstance(context, threads);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  /** A wait and a file at once; takes as long as the slower. */
  Answer aggregate(int waitMs, int lines) throws InterruptedException {
    return NOT_HERE;
  }

  /**
   * The same before structured concurrency. It runs on the same kind of threads, as the common pool
   * has one per CPU and would let most requests queue; what is missing is that nobody stops the
   * other branch when one fails, or when the request itself is told to stop.
   */
  Answer aggregateOld(int waitMs, int lines) throws InterruptedException {
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
    return NOT_HERE;
  }

  /** A file and a wait at once; a wait longer than its time is cancelled and stood in for. */
  Answer aggregateWithFallback(int waitMs, int timeoutMs, int lines) throws InterruptedException {
    return NOT_HERE;
  }

  /** Many waits at once; takes as long as one. */
  Answer multiAggregate(int count, int waitMs) throws InterruptedException {
    return NOT_HERE;
  }

  /** One branch: a wait, counted however it ends. */
  final int pause(Route route, int waitMs) throws InterruptedException {
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
  final Reading read(Route route, int lines) {
    try {
      Reading reading = file.read(lines);
      branches.ok(route);
      return reading;
    } catch (IOException e) {
      branches.failed(route);
      throw new UncheckedIOException(e);
    }
  }
}
