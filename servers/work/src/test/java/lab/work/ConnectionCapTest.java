package lab.work;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

class ConnectionCapTest {
  private final List<String> granted = new ArrayList<>();
  private final ConnectionCap cap = new ConnectionCap(1);

  private ConnectionCap.Waiter call(String name) {
    return new ConnectionCap.Waiter() {
      @Override
      protected void granted() {
        granted.add(name);
      }
    };
  }

  @Test
  void whoWaitedLongestIsNext() {
    assertThat(cap.enter(call("a"))).isTrue();
    assertThat(cap.enter(call("b"))).isFalse();
    assertThat(cap.enter(call("c"))).isFalse();
    assertThat(cap.getPending()).isEqualTo(2);
    cap.leave();
    cap.leave();
    assertThat(granted).containsExactly("b", "c");
    assertThat(cap.getLeased()).isEqualTo(1);
    assertThat(cap.getPending()).isZero();
  }

  @Test
  void whoGaveUpIsPassedOver() {
    ConnectionCap.Waiter second = call("b");
    assertThat(cap.enter(call("a"))).isTrue();
    assertThat(cap.enter(call("x"))).isFalse();
    assertThat(cap.enter(second)).isFalse();
    assertThat(cap.enter(call("c"))).isFalse();
    assertThat(cap.giveUp(second)).isTrue();
    assertThat(cap.getPending()).isEqualTo(2);
    cap.leave();
    cap.leave();
    assertThat(granted).containsExactly("x", "c");
  }

  @Test
  void whoHasBeenGrantedCannotGiveUp() {
    ConnectionCap.Waiter second = call("b");
    assertThat(cap.enter(call("a"))).isTrue();
    assertThat(cap.enter(second)).isFalse();
    cap.leave();
    assertThat(cap.giveUp(second)).isFalse();
    assertThat(cap.getLeased()).isEqualTo(1);
  }

  @Test
  void moreRoomIsTakenAtOnce() {
    assertThat(cap.enter(call("a"))).isTrue();
    assertThat(cap.enter(call("b"))).isFalse();
    assertThat(cap.enter(call("c"))).isFalse();
    assertThat(cap.enter(call("d"))).isFalse();
    cap.resize(3);
    assertThat(granted).containsExactly("b", "c");
    assertThat(cap.getLeased()).isEqualTo(3);
  }

  @Test
  void lessRoomIsWaitedFor() {
    cap.resize(2);
    assertThat(cap.enter(call("a"))).isTrue();
    assertThat(cap.enter(call("b"))).isTrue();
    cap.resize(1);
    assertThat(cap.enter(call("c"))).isFalse();
    cap.leave();
    assertThat(granted).isEmpty();
    cap.leave();
    assertThat(granted).containsExactly("c");
  }

  @Test
  void aThreadWaitsUntilAPlaceIsFree() throws Exception {
    assertThat(cap.tryEnter()).isTrue();
    FutureTask<Boolean> second = new FutureTask<>(() -> cap.enterWithin(Long.MAX_VALUE));
    Thread thread = Thread.ofVirtual().start(second);
    while (cap.getPending() == 0) {
      Thread.onSpinWait();
    }
    assertThat(cap.enter(call("c"))).isFalse();
    cap.leave();
    assertThat(second.get()).isTrue();
    assertThat(granted).isEmpty();
    cap.leave();
    assertThat(granted).containsExactly("c");
    thread.join();
  }

  @Test
  void aThreadThatWaitsTooLongHasNoPlace() throws Exception {
    assertThat(cap.tryEnter()).isTrue();
    assertThat(cap.enterWithin(1)).isFalse();
    assertThat(cap.getPending()).isZero();
    cap.leave();
    assertThat(cap.getLeased()).isZero();
  }

  @Test
  void aThreadThatIsInterruptedHasNoPlace() {
    assertThat(cap.tryEnter()).isTrue();
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> cap.enterWithin(Long.MAX_VALUE))
        .isInstanceOf(InterruptedException.class);
    assertThat(cap.getPending()).isZero();
    cap.leave();
    assertThat(cap.getLeased()).isZero();
  }

  /** Granted, given up, taken away and given back, all at once: no place is lost or made up. */
  @Test
  void noPlaceIsLostInACrowd() throws Exception {
    AtomicInteger inside = new AtomicInteger();
    AtomicInteger most = new AtomicInteger();
    List<Future<?>> crowd = new ArrayList<>();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int i = 0; i < 64; i++) {
        Random random = new Random(i);
        crowd.add(
            threads.submit(
                () -> {
                  for (int round = 0; round < 300; round++) {
                    if (cap.enterWithin(random.nextInt(200_000))) {
                      most.accumulateAndGet(inside.incrementAndGet(), Math::max);
                      LockSupport.parkNanos(random.nextInt(50_000));
                      inside.decrementAndGet();
                      cap.leave();
                    }
                  }
                  return null;
                }));
      }
      for (int i = 0; crowd.stream().anyMatch(each -> !each.isDone()); i++) {
        cap.resize(1 + i % 4);
        LockSupport.parkNanos(100_000);
      }
      for (Future<?> each : crowd) {
        var _ = each.get();
      }
    }
    assertThat(most.get()).isBetween(1, 4);
    assertThat(cap.getLeased()).isZero();
    assertThat(cap.getPending()).isZero();
  }
}
