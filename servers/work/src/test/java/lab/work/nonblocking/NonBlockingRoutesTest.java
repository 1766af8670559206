package lab.work.nonblocking;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import lab.shell.TestContext;
import lab.spec.Answer;
import lab.spec.RouteCall;
import lab.work.nonblocking.NonBlockingRoutes.Demonstrations;
import lab.work.nonblocking.NonBlockingRoutes.Request;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class NonBlockingRoutesTest {
  private final Deque<Runnable> later = new ArrayDeque<>();
  private final List<Integer> statuses = new ArrayList<>();

  /** Keeps what it is to do later. The losers of races cannot be cancelled: the winner throws. */
  private final LoopServices loop =
      new LoopServices() {
        @Override
        public Pending after(long nanos, Runnable then) {
          later.add(then);
          return () -> {
            throw new IllegalStateException("planted by a test");
          };
        }

        @Override
        public long readyNanos(long earliestNanos) {
          return earliestNanos;
        }

        @Override
        public void execute(Runnable task) {
          later.add(task);
        }
      };

  private static void raceToThrow(RouteCall call, Request request) {
    var first = request.after(1, () -> request.accept(Answer.INTERNAL_ERROR));
    var second = request.after(1, first::cancel);
    var _ = request.after(1, second::cancel);
  }

  @Test
  void whatThrowsLaterIsAnsweredOnceWith500() throws Exception {
    begin("/aggregate", NonBlockingRoutesTest::raceToThrow);
    assertThat(statuses).containsExactly(500);
  }

  @Test
  void workThatIsHandedOverAndFailsIsAnsweredWith500() throws Exception {
    begin(
        "/aggregate",
        (call, request) ->
            request.handOver(
                () -> {
                  throw new IllegalStateException("planted by a test");
                },
                (result, failure) ->
                    request.accept(failure == null ? Answer.ok(new byte[0]) : Answer.QUEUE_FULL)));
    assertThat(statuses).containsExactly(503);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whateverThrowsLaterIsAnsweredWith500(boolean error) throws Exception {
    begin(
        "/aggregate",
        (call, request) -> {
          var _ = request.after(1, () -> fail(error));
        });
    begin(
        "/aggregate",
        (call, request) -> request.handOver(() -> "", (result, failure) -> fail(error)));
    assertThat(statuses).containsExactly(500, 500);
  }

  /** The answer cannot be written: the loop, which calls this later, must not meet that. */
  @Test
  void theDownstreamsAnswerIsGuarded() throws Exception {
    try (TestContext context = new TestContext()) {
      new NonBlockingRoutes(
              context.model(),
              loop,
              Runnable::run,
              to -> later.add(() -> to.accept(Answer.ok(new byte[0]))),
              Demonstrations.NONE)
          .begin(
              context.model().routes().resolve("GET", "/downstream", null),
              answer -> {
                throw new IllegalStateException("planted by a test");
              });
      runLater();
    }
  }

  private void begin(String path, Demonstrations demonstrations) throws Exception {
    try (TestContext context = new TestContext()) {
      new NonBlockingRoutes(context.model(), loop, Runnable::run, to -> {}, demonstrations)
          .begin(
              context.model().routes().resolve("GET", path, null),
              answer -> statuses.add(answer.status()));
      // Whatever they throw, their loop must not meet it.
      runLater();
    }
  }

  private void runLater() {
    for (Runnable next = later.poll(); next != null; next = later.poll()) {
      next.run();
    }
  }

  private static void fail(boolean error) {
    if (error) {
      throw new AssertionError("planted by a test");
    }
    throw new IllegalStateException("planted by a test");
  }
}
