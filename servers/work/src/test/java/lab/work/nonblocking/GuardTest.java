package lab.work.nonblocking;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.BiConsumer;
import lab.spec.DownstreamOutcome;
import lab.spec.Route;
import lab.spec.RouteCall;
import lab.spec.Routes;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GuardTest {
  private final Deque<Runnable> later = new ArrayDeque<>();

  /** Keeps what it is to do later. */
  private final LoopServices loop =
      new LoopServices() {
        @Override
        public Pending after(long millis, Runnable then) {
          later.add(then);
          return () -> {};
        }

        @Override
        public <T> void handOver(
            Callable<T> work, BiConsumer<@Nullable T, @Nullable Throwable> then) {
          later.add(() -> then.accept(null, null));
        }

        @Override
        public void callDownstream(DownstreamCallback callback) {
          later.add(() -> callback.ended(DownstreamOutcome.OK, new byte[0]));
        }
      };

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whateverThrowsLaterIsAnsweredWith500(boolean error) {
    List<Integer> statuses = new ArrayList<>();
    RouteCall call = new Routes(Route.COMMON).resolve("GET", "/health", null);
    for (int part = 0; part < 3; part++) {
      Guard request = new Guard(loop, call, answer -> statuses.add(answer.status()));
      switch (part) {
        case 0 -> {
          var _ = request.after(1, () -> fail(error));
        }
        case 1 -> request.handOver(() -> "", (result, failure) -> fail(error));
        default -> request.callDownstream((outcome, body) -> fail(error));
      }
    }
    assertThat(statuses).isEmpty();
    // The loop calls them, and must not meet what they throw.
    later.forEach(Runnable::run);
    assertThat(statuses).containsExactly(500, 500, 500);
  }

  private static void fail(boolean error) {
    if (error) {
      throw new AssertionError("planted by a test");
    }
    throw new IllegalStateException("planted by a test");
  }
}
