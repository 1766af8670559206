package lab.nettyloops;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;
import lab.observe.BranchMetrics;
import lab.spec.Answer;
import lab.spec.Bodies;
import lab.spec.LineFile;
import lab.spec.LineFile.Reading;
import lab.spec.Route;
import lab.spec.RouteCall;
import lab.work.nonblocking.LoopServices;
import lab.work.nonblocking.LoopServices.Pending;
import lab.work.nonblocking.NonBlockingRoutes;
import org.jspecify.annotations.Nullable;

/** The routes that do several things at once, as callbacks on one thread: no locks, no scopes. */
final class Aggregates implements NonBlockingRoutes.Demonstrations {
  private final LineFile file;
  private final BranchMetrics branches;

  Aggregates(LineFile file, BranchMetrics branches) {
    this.file = file;
    this.branches = branches;
  }

  @Override
  public void begin(RouteCall call, LoopServices loop, Consumer<Answer> to) {
    switch (call.route()) {
      // The same here: on an event loop parallel work is callbacks, the old way or not.
      case AGGREGATE, AGGREGATE_OLD ->
          aggregate(call.route(), call.value("wait_ms"), call.value("lines"), loop, to);
      case FIRST_SUCCESS -> firstSuccess(call.value("fast_ms"), call.value("slow_ms"), loop, to);
      case AGGREGATE_WITH_FALLBACK ->
          aggregateWithFallback(
              call.value("wait_ms"), call.value("timeout_ms"), call.value("lines"), loop, to);
      case MULTI_AGGREGATE ->
          multiAggregate(call.value("branches"), call.value("wait_ms"), loop, to);
      default -> throw new IllegalArgumentException(call.route().path());
    }
  }

  /** A wait and a file at once; takes as long as the slower. */
  private void aggregate(
      Route route, int waitMs, int lines, LoopServices loop, Consumer<Answer> to) {
    FileAndWait both =
        new FileAndWait(route, loop, to, reading -> Bodies.aggregate(waitMs, reading));
    both.read(lines);
    var _ =
        loop.after(
            waitMs,
            () -> {
              branches.ok(route);
              both.waitEnded();
            });
  }

  /** The first of three branches that succeeds: one fails at once, the slower is cancelled. */
  private void firstSuccess(int fastMs, int slowMs, LoopServices loop, Consumer<Answer> to) {
    Route route = Route.FIRST_SUCCESS;
    branches.failed(route);
    Race race =
        new Race(
            loop,
            winner -> {
              branches.ok(route);
              branches.cancelled(route);
              to.accept(Bodies.firstSuccess(winner, 1, 1));
            });
    race.enter("fast", fastMs);
    race.enter("slow", slowMs);
  }

  /** A file and a wait at once; a wait longer than its time is cancelled and stood in for. */
  private void aggregateWithFallback(
      int waitMs, int timeoutMs, int lines, LoopServices loop, Consumer<Answer> to) {
    Route route = Route.AGGREGATE_WITH_FALLBACK;
    boolean[] inTime = new boolean[1];
    FileAndWait both =
        new FileAndWait(
            route, loop, to, reading -> Bodies.aggregateWithFallback(inTime[0], reading));
    both.read(lines);
    Race race =
        new Race(
            loop,
            winner -> {
              inTime[0] = winner.equals("wait");
              if (inTime[0]) {
                branches.ok(route);
              } else {
                branches.cancelled(route);
              }
              both.waitEnded();
            });
    race.enter("wait", waitMs);
    race.enter("timeout", timeoutMs);
  }

  /** Many waits at once; takes as long as one. */
  private void multiAggregate(int count, int waitMs, LoopServices loop, Consumer<Answer> to) {
    int[] ended = new int[1];
    for (int i = 0; i < count; i++) {
      var _ =
          loop.after(
              waitMs,
              () -> {
                branches.ok(Route.MULTI_AGGREGATE);
                if (++ended[0] == count) {
                  to.accept(Bodies.multiAggregate(count, (long) count * waitMs));
                }
              });
    }
  }

  /** Waits of which the first to end cancels the others. */
  private static final class Race {
    private final List<Pending> entered = new ArrayList<>(2);
    private final LoopServices loop;
    private final Consumer<String> end;
    private boolean ended;

    /**
     * @param end takes the winner's name, once
     */
    Race(LoopServices loop, Consumer<String> end) {
      this.loop = loop;
      this.end = end;
    }

    void enter(String name, int waitMs) {
      if (!ended) {
        entered.add(loop.after(waitMs, () -> win(name)));
      }
    }

    private void win(String name) {
      ended = true;
      entered.forEach(Pending::cancel);
      end.accept(name);
    }
  }

  /** A reading and a wait; answers when both have ended, or at once when the reading failed. */
  private final class FileAndWait {
    private final Route route;
    private final LoopServices loop;
    private final Consumer<Answer> to;
    private final Function<Reading, Answer> answer;
    private @Nullable Reading reading;
    private boolean waited;

    FileAndWait(
        Route route, LoopServices loop, Consumer<Answer> to, Function<Reading, Answer> answer) {
      this.route = route;
      this.loop = loop;
      this.to = to;
      this.answer = answer;
    }

    void read(int lines) {
      loop.handOver(() -> file.read(lines), this::readingEnded);
    }

    void waitEnded() {
      waited = true;
      answerWhenBothEnded();
    }

    private void readingEnded(@Nullable Reading result, @Nullable Throwable failure) {
      if (result == null) {
        branches.failed(route);
        to.accept(Answer.INTERNAL_ERROR);
      } else {
        branches.ok(route);
        reading = result;
        answerWhenBothEnded();
      }
    }

    private void answerWhenBothEnded() {
      Reading result = reading;
      if (waited && result != null) {
        to.accept(answer.apply(result));
      }
    }
  }
}
