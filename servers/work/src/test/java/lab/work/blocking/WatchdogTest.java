package lab.work.blocking;

import static java.util.concurrent.TimeUnit.MINUTES;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.LockSupport;
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
    CountDownLatch allCame = occupy();
    Call never = watch(NEVER);
    Call third = watch(3);
    Call first = watch(-2 * NEVER);
    Call second = watch(-NEVER);
    allCame.countDown();
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
    CountDownLatch allForgotten = occupy();
    Call[] calls = new Call[5];
    for (int i = 0; i < calls.length; i++) {
      calls[i] = watch(i);
    }
    // The first, the last, one between, and once more.
    for (int i : new int[] {0, 4, 2, 2}) {
      assertThat(watchdog.forget(calls[i])).isFalse();
    }
    allForgotten.countDown();
    assertThat(brokenOff.take()).isSameAs(calls[1]);
    assertThat(brokenOff.take()).isSameAs(calls[3]);
    watch(0);
    assertThat(brokenOff.take()).isNotIn((Object[]) calls);
    assertThat(brokenOff).isEmpty();
  }

  @Test
  void oneThatCannotBeBrokenOffCostsTheOthersNothing() throws Exception {
    CountDownLatch tried = new CountDownLatch(2);
    for (int i = 0; i < 2; i++) {
      watchdog.watch(
          new Watchdog.Watched() {
            @Override
            protected void breakOff() {
              tried.countDown();
              throw new IllegalStateException("planted by a test");
            }
          },
          System.nanoTime() + (i == 0 ? 0 : NEVER));
    }
    Call late = watch(MS);
    assertThat(brokenOff.poll(1, MINUTES)).isSameAs(late);
    // So it is when all are broken off.
    Call last = watch(2 * NEVER);
    watchdog.close();
    assertThat(brokenOff.poll(1, MINUTES)).isSameAs(last);
    assertThat(tried.getCount()).isZero();
  }

  @Test
  void whatEndedInTimeIsWatchedAgain() throws Exception {
    Call call = watch(NEVER);
    assertThat(watchdog.forget(call)).isFalse();
    watchdog.watch(call, System.nanoTime() + MS);
    assertThat(brokenOff.poll(1, MINUTES)).isSameAs(call);
  }

  @Test
  void whatIsStillUnderWayAtTheEndIsBrokenOff() throws Exception {
    Call first = watch(NEVER);
    Call second = watch(NEVER);
    watchdog.close();
    assertThat(brokenOff.take()).isSameAs(first);
    assertThat(brokenOff.take()).isSameAs(second);
  }

  /** Keeps its thread at work until the latch is down: what comes meanwhile only waits. */
  private CountDownLatch occupy() throws InterruptedException {
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch end = new CountDownLatch(1);
    watchdog.watch(
        new Watchdog.Watched() {
          @Override
          protected void breakOff() {
            begun.countDown();
            try {
              end.await();
            } catch (InterruptedException e) {
              Thread.currentThread().interrupt();
            }
          }
        },
        System.nanoTime());
    begun.await();
    return end;
  }

  /** Each is forgotten in time or broken off: never both, never neither, never twice. */
  @Test
  void inACrowdEachIsForgottenOrBrokenOff() throws Exception {
    List<Future<List<Call>>> crowd = new ArrayList<>();
    List<Call> late = new ArrayList<>();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int i = 0; i < 16; i++) {
        Random random = new Random(i);
        crowd.add(
            threads.submit(
                () -> {
                  List<Call> tooLate = new ArrayList<>();
                  for (int round = 0; round < 300; round++) {
                    Call call = watch(random.nextInt(300_000));
                    LockSupport.parkNanos(random.nextInt(300_000));
                    if (watchdog.forget(call)) {
                      tooLate.add(call);
                    }
                  }
                  return tooLate;
                }));
      }
      for (Future<List<Call>> each : crowd) {
        late.addAll(each.get());
      }
    }
    List<Call> brokenOffCalls = new ArrayList<>();
    while (brokenOffCalls.size() < late.size()) {
      brokenOffCalls.add(brokenOff.take());
    }
    assertThat(brokenOffCalls).containsExactlyInAnyOrderElementsOf(late);
    assertThat(brokenOff).isEmpty();
  }

  private Call watch(long nanos) {
    Call call = new Call();
    watchdog.watch(call, System.nanoTime() + nanos);
    return call;
  }

  private final class Call extends Watchdog.Watched {
    @Override
    protected void breakOff() {
      brokenOff.add(this);
    }
  }
}
