package lab.work.blocking;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class SweeperTest {
  @Test
  void aSweepThatThrowsIsNotTheLast() throws Exception {
    CountDownLatch swept = new CountDownLatch(3);
    Runnable failing =
        () -> {
          swept.countDown();
          throw new IllegalStateException("planted by a test");
        };
    try (Sweeper sweeper = new Sweeper("sweeper", Duration.ofMillis(1), failing)) {
      assertThat(swept.await(1, TimeUnit.MINUTES)).isTrue();
      assertThat(sweeper).isNotNull();
    }
  }
}
