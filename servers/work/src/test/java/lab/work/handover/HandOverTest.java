package lab.work.handover;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Queue;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class HandOverTest {
  /** Tomcat promises nobody that it has one dispatcher only. */
  @Test
  void twoThatComeAtOnceDoNotTakeOnePlace() throws Exception {
    CyclicBarrier both = new CyclicBarrier(2);
    Queue<Runnable> taken = new ConcurrentLinkedQueue<>();
    HandOver handOver = new HandOver(taken::add, () -> oneWhenBothAreThere(both));
    CountDownLatch refused = new CountDownLatch(1);
    Runnable request =
        () -> {
          if (HandOver.ticket().rejected()) {
            refused.countDown();
          }
        };
    Thread[] adders = new Thread[2];
    for (int i = 0; i < adders.length; i++) {
      adders[i] = Thread.ofPlatform().start(() -> handOver.execute(request));
    }
    for (Thread adder : adders) {
      adder.join();
    }
    assertThat(taken).hasSize(1);
    assertThat(handOver.accepted()).isEqualTo(1);
    assertThat(refused.await(1, TimeUnit.MINUTES)).isTrue();
    taken.remove().run();
    assertThat(handOver.accepted()).isZero();
  }

  @Test
  void aPlaceIsFreeBeforeItsClientHasItsAnswer() {
    Queue<Runnable> taken = new ConcurrentLinkedQueue<>();
    HandOver handOver = new HandOver(taken::add, () -> 1);
    handOver.execute(
        () -> {
          HandOver.ticket().leave();
          handOver.execute(() -> {});
        });
    taken.remove().run();
    assertThat(taken).hasSize(1);
    taken.remove().run();
    assertThat(handOver.accepted()).isZero();
  }

  private static int oneWhenBothAreThere(CyclicBarrier both) {
    try {
      both.await();
    } catch (InterruptedException | BrokenBarrierException e) {
      throw new AssertionError(e);
    }
    return 1;
  }
}
