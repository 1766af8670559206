package lab.work.nonblocking;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import lab.shell.TestContext;
import lab.spec.Answer;
import lab.spec.DownstreamOutcome;
import lab.spec.RouteCall;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class NonBlockingRoutesTest {
  private final Deque<Runnable> later = new ArrayDeque<>();

  /** The losers of races cannot be cancelled: what the winner does then throws. */
  private final LoopServices loop =
      new LoopServices() {
        @Override
        public Pending after(long millis, Runnable then) {
          later.add(then);
          return () -> {
            throw new IllegalStateException("planted by a test");
          };
        }

        @Override
        public <T> void handOver(
            Callable<T> work, BiConsumer<@Nullable T, @Nullable Throwable> then) {
          later.add(() -> then.accept(null, new IllegalStateException("planted by a test")));
        }

        @Override
        public void callDownstream(DownstreamCallback callback) {
          later.add(() -> callback.ended(DownstreamOutcome.TIMEOUT, new byte[0]));
        }
      };

  private static void raceToThrow(RouteCall call, LoopServices loop, Consumer<Answer> to) {
    var first = loop.after(1, () -> to.accept(Answer.INTERNAL_ERROR));
    var second = loop.after(1, first::cancel);
    var _ = loop.after(1, second::cancel);
  }

  @ParameterizedTest
  @ValueSource(strings = {"/file", "/aggregate"})
  void whatThrowsLaterIsAnsweredOnceWith500(String path) throws Exception {
    List<Integer> statuses = new ArrayList<>();
    try (TestContext context = new TestContext()) {
      new NonBlockingRoutes(context.model(), loop, NonBlockingRoutesTest::raceToThrow)
          .begin(
              context.model().routes().resolve("GET", path, null),
              answer -> statuses.add(answer.status()));
      assertThat(statuses).isEmpty();
      // The loop calls them, and must not meet what they throw.
      later.forEach(Runnable::run);
      assertThat(statuses).containsExactly(500);
    }
  }
}
