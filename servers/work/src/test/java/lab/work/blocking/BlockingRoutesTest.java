package lab.work.blocking;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import lab.shell.TestContext;
import org.junit.jupiter.api.Test;

class BlockingRoutesTest {
  /** Tells of each call whether it was made inside {@code synchronized}. */
  private static final class Calls implements DownstreamClient {
    private final List<Boolean> locked = new ArrayList<>();

    @Override
    public byte[] get(long deadlineNanos) {
      locked.add(Thread.holdsLock(Thread.currentThread()));
      return new byte[0];
    }

    @Override
    public void close() {}
  }

  @Test
  void onlyTheRouteOfThatNameCallsInsideSynchronized() throws Exception {
    Calls calls = new Calls();
    try (TestContext context = new TestContext();
        BlockingRoutes routes = BlockingRoutes.ofFramework(context.model(), () -> calls)) {
      for (String path : List.of("/downstream", "/synchronized")) {
        assertThat(routes.answer(context.model().routes().resolve("GET", path, null)).status())
            .isEqualTo(200);
      }
    }
    assertThat(calls.locked).containsExactly(false, true);
  }
}
