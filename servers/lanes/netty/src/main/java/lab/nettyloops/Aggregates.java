package lab.nettyloops;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;
import lab.spec.Answer;
import lab.spec.Bodies;
import lab.spec.LineFile;
import lab.spec.LineFile.Reading;
import lab.spec.RouteCall;
import lab.work.nonblocking.LoopServices.Pending;
import lab.work.nonblocking.NonBlockingRoutes;
import lab.work.nonblocking.NonBlockingRoutes.Request;
import org.jspecify.annotations.Nullable;

/** The routes that do several things at once, as callbacks on one thread: no locks, no scopes. */
record Aggregates(LineFile file) implements NonBlockingRoutes.Demonstrations {
  @Override
  public void begin(RouteCall call, Request request) {
    switch (call.route()) {
      // The same here: on an event loop parallel work is callbacks, the old way or not.
      case AGGREGATE, AGGREGATE_OLD -> aggregate(call, request);
      case FIRST_SUCCESS -> firstSuccess(call, request);
      case AGGREGATE_WITH_FALLBACK -> aggregateWithFallback(call, request);
      case MULTI_AGGREGATE -> multiAggregate(call, request);
      default -> throw new IllegalArgumentException(call.route().path());
    }
  }

  private void aggregate(RouteCall call, Request request) {
    int waitMs = call.value("wait_ms");
    FileAndWait both = new FileAndWait(call, request);
    var _ =
        request.after(waitMs, () -> both.waitEnded(reading -> Bodies.aggregate(waitMs, reading)));
  }

  private void firstSuccess(RouteCall call, Request request) {
    Race race = new Race(request, winner -> request.accept(Bodies.firstSuccess(winner, 1, 1)));
    race.enter("fast", call.value("fast_ms"));
    race.enter("slow", call.value("slow_ms"));
  }

  private void aggregateWithFallback(RouteCall call, Request request) {
    FileAndWait both = new FileAndWait(call, request);
    Race race =
        new Race(
            request,
            winner ->
                both.waitEnded(
                    reading -> Bodies.aggregateWithFallback(winner.equals("wait"), reading)));
    race.enter("wait", call.value("wait_ms"));
    race.enter("timeout", call.value("timeout_ms"));
  }

  private void multiAggregate(RouteCall call, Request request) {
    int count = call.value("branches");
    int waitMs = call.value("wait_ms");
    int[] ended = new int[1];
    for (int i = 0; i < count; i++) {
      var _ =
          request.after(
              waitMs,
              () -> {
                if (++ended[0] == count) {
                  request.accept(Bodies.multiAggregate(count, (long) count * waitMs));
                }
              });
    }
  }

  /** Waits of which the first to end cancels the others. */
  private static final class Race {
    private final List<Pending> entered = new ArrayList<>(2);
    private final Request request;
    private final Consumer<String> end;
    private boolean ended;

    /** The end takes the winner's name, once. */
    Race(Request request, Consumer<String> end) {
      this.request = request;
      this.end = end;
    }

    void enter(String name, int waitMs) {
      if (!ended) {
        entered.add(request.after(waitMs, () -> win(name)));
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
    private final Request request;
    private @Nullable Reading reading;
    private @Nullable Function<Reading, Answer> answer;

    FileAndWait(RouteCall call, Request request) {
      this.request = request;
      int lines = call.value("lines");
      request.handOver(() -> file.read(lines), (result, _) -> readingEnded(result));
    }

    void waitEnded(Function<Reading, Answer> how) {
      answer = how;
      answerWhenBothEnded();
    }

    private void readingEnded(@Nullable Reading result) {
      if (result == null) {
        request.accept(Answer.INTERNAL_ERROR);
      } else {
        reading = result;
        answerWhenBothEnded();
      }
    }

    private void answerWhenBothEnded() {
      if (reading != null && answer != null) {
        request.accept(answer.apply(reading));
      }
    }
  }
}
