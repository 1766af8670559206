package lab.contract.blocking;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class WatchdogTest {
  private static final long MS = 1_000_000;
  private static final long NEVER = 600_000 * MS;

  private final Watchdog watchdog = new Watchdog("deadlines");
  private final BlockingQueue<Call> brokenOff = new LinkedBlockingQueue<>();

  @AfterEach
  void stop() {
    watchdog.close();
  }

  @Test
  void theSoonestDeadlineIsFirstWheneverItCame() throws Exception {
    Call never = watch(NEVER);
    Call third = watch(90 * MS);
    Call second = watch(60 * MS);
    Call first = watch(30 * MS);
    assertThat(brokenOff.take()).isSameAs(first);
    assertThat(brokenOff.take()).isSameAs(second);
    assertThat(brokenOff.take()).isSameAs(third);
    assertThat(watchdog.forget(third)).isTrue();
    assertThat(watchdog.forget(never)).isFalse();
  }

  @Test
  void nothingIsBrokenOffBeforeItsTime() throws Exception {
    long begun = System.nanoTime();
    Call call = watch(50 * MS);
    assertThat(brokenOff.take()).isSameAs(call);
    assertThat(System.nanoTime() - begun).isGreaterThanOrEqualTo(50 * MS);
  }

  @Test
  void whatIsForgottenIsNotBrokenOffAndLeavesTheOthersInPlace() throws Exception {
    Call[] calls = new Call[5];
    for (int i = 0; i < calls.length; i++) {
      calls[i] = watch(200 * MS + i);
    }
    // The first, the last, one between, and once more.
    for (int i : new int[] {0, 4, 2, 2}) {
      assertThat(watchdog.forget(calls[i])).isFalse();
    }
    assertThat(brokenOff.take()).isSameAs(calls[1]);
    assertThat(brokenOff.take()).isSameAs(calls[3]);
    watch(0);
    assertThat(brokenOff.take()).isNotIn((Object[]) calls);
    assertThat(brokenOff).isEmpty();
  }

  @Test
  void whatEndedInTimeIsWatchedAgain() throws Exception {
    Call call = watch(NEVER);
    assertThat(watchdog.forget(call)).isFalse();
    watchdog.watch(call, System.nanoTime() + MS);
    assertThat(brokenOff.poll(30, SECONDS)).isSameAs(call);
  }

  @Test
  void whatIsStillUnderWayAtTheEndIsBrokenOff() throws Exception {
    Call first = watch(NEVER);
    Call second = watch(NEVER);
    watchdog.close();
    assertThat(brokenOff.take()).isSameAs(first);
    assertThat(brokenOff.take()).isSameAs(second);
  }

  private Call watch(long nanos) {
    Call call = new Call();
    watchdog.watch(call, System.nanoTime() + nanos);
    return call;
  }

  private final class Call extends Watchdog.Watched {
    @Override
    void breakOff() {
      brokenOff.add(this);
    }
  }
}
