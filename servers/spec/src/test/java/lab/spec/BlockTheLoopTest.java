package lab.spec;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class BlockTheLoopTest {
  private static final long HOLD_MS = 20;

  @Test
  void aSpinTakesTheWaitInCpuTimeAndASleepTakesNone() {
    assertThat(cpuNanosOf(BlockTheLoop.SPIN)).isGreaterThanOrEqualTo(HOLD_MS * 1_000_000);
    assertThat(cpuNanosOf(BlockTheLoop.SLEEP)).isLessThan(HOLD_MS * 1_000_000);
  }

  /** A look at the clock is the kernel's work, and takes less than a microsecond. */
  @Test
  void aSpinComputes() {
    var threads = ManagementFactory.getThreadMXBean();
    var looks = new AtomicLong();
    BlockTheLoop.spin(
        500,
        () -> {
          looks.incrementAndGet();
          return threads.getCurrentThreadCpuTime();
        });
    assertThat(looks.get()).isLessThan(500_000 / 10);
  }

  @Test
  void whatIsReadBackTellsTheTwoApart() throws Exception {
    for (Map.Entry<String, Object> each :
        Map.<String, Object>of("false", false, "true", true, "spin", "spin").entrySet()) {
      Settings settings = Settings.fromEnvironment(Map.of("LAB_BLOCK_THE_LOOP", each.getKey()));
      assertThat(settings.asMap()).containsEntry("block_the_loop", each.getValue());
    }
  }

  private static long cpuNanosOf(BlockTheLoop how) {
    var threads = ManagementFactory.getThreadMXBean();
    long before = threads.getCurrentThreadCpuTime();
    how.hold(HOLD_MS);
    return threads.getCurrentThreadCpuTime() - before;
  }
}
