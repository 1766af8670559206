package lab.work.faults;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import lab.shell.TestContext;
import org.junit.jupiter.api.Test;

class PinTest {
  @Test
  void aVirtualThreadKeepsItsCarrierForSoLong() throws Exception {
    try (TestContext context = new TestContext()) {
      Pin pin = new Pin(context.model().knobs());
      pin.hold(); // Off: returns at once.
      context.change("pin_ms", 60);
      context.change("lock_watch_ms", 50);
      long begun = System.nanoTime();
      for (int i = 0; i < 2; i++) {
        assertThat(Thread.ofVirtual().start(() -> hold(pin)).join(Duration.ofMinutes(1))).isTrue();
      }
      assertThat(System.nanoTime() - begun).isGreaterThan(TimeUnit.MILLISECONDS.toNanos(120));
      String site = "pinned virtual lab.work.faults.PinnedWait.<clinit>:";
      long patience = System.nanoTime() + TimeUnit.MINUTES.toNanos(2);
      while (!context.waitedSeconds().toString().contains(site)) {
        assertThat(System.nanoTime()).as(context.waitedSeconds().toString()).isLessThan(patience);
        Thread.sleep(20);
      }
    }
  }

  @Test
  void whoIsToldToStopDoesSo() throws Exception {
    try (TestContext context = new TestContext()) {
      Pin pin = new Pin(context.model().knobs());
      context.change("pin_ms", 60_000);
      var stopped = new AtomicBoolean();
      Thread waiting = Thread.ofVirtual().start(() -> stopped.set(!hold(pin)));
      while (waiting.getState() != Thread.State.TIMED_WAITING) {
        Thread.sleep(1);
      }
      waiting.interrupt();
      assertThat(waiting.join(Duration.ofMinutes(1))).isTrue();
      assertThat(stopped).isTrue();
    }
  }

  /** Whether it waited to the end. */
  private static boolean hold(Pin pin) {
    try {
      pin.hold();
      return true;
    } catch (InterruptedException e) {
      return false;
    }
  }
}
