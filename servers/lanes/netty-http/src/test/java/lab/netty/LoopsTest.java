package lab.netty;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.nio.NioIoHandler;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class LoopsTest {
  /** Netty's own schedule ends with the first exception: no idle client would be closed again. */
  @Test
  void whatIsDoneAgainAndAgainMayThrow() throws Exception {
    CountDownLatch times = new CountDownLatch(3);
    Loops loops = new Loops(1, NioIoHandler.newFactory());
    try {
      loops
          .all()
          .getFirst()
          .every(
              1_000_000,
              () -> {
                times.countDown();
                throw new IllegalStateException("planted by a test");
              });
      assertThat(times.await(1, TimeUnit.MINUTES)).isTrue();
    } finally {
      loops.end();
    }
  }
}
