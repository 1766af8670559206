package lab.fixedpool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class LifoHandOverTest {
  private final LifoHandOver queue = new LifoHandOver();

  @Test
  void elementsGoInOrder() throws Exception {
    List<Runnable> given = List.of(() -> {}, () -> {}, () -> {});
    given.forEach(queue::put);
    assertThat(queue).hasSize(3);
    assertThat(queue.peek()).isSameAs(given.getFirst());
    assertThat(List.of(queue.take(), queue.take(), queue.take())).isEqualTo(given);
    assertThat(queue.poll()).isNull();
    assertThat(queue.poll(1, TimeUnit.MILLISECONDS)).isNull();
  }

  @Test
  void whoBeganToWaitLastIsServedFirst() throws Exception {
    LinkedBlockingQueue<String> served = new LinkedBlockingQueue<>();
    List<Thread> waiting = new ArrayList<>();
    for (String name : List.of("a", "b", "c")) {
      Thread thread =
          Thread.ofPlatform()
              .start(
                  () -> {
                    try {
                      queue.take().run();
                      served.add(name);
                    } catch (InterruptedException e) {
                      served.add(name + " interrupted");
                    }
                  });
      waiting.add(thread);
      awaitParked(thread);
    }
    queue.put(() -> {});
    assertThat(served.take()).isEqualTo("c");
    waiting.get(1).interrupt();
    assertThat(served.take()).isEqualTo("b interrupted");
    queue.put(() -> {});
    assertThat(served.take()).isEqualTo("a");
  }

  /** A pool that has shrunk has interrupted those it ends, whether they have noticed or not. */
  @Test
  void whoIsInterruptedIsGivenNothing() throws Exception {
    List<Thread> waiting = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      waiting.add(Thread.ofPlatform().start(() -> assertThatThrownBy(queue::take)));
    }
    for (Thread thread : waiting) {
      awaitParked(thread);
    }
    waiting.forEach(Thread::interrupt);
    queue.put(() -> {});
    for (Thread thread : waiting) {
      thread.join();
    }
    assertThat(queue).hasSize(1);
  }

  /** Threads come and go, are interrupted and resized: whatever is handed in runs once. */
  @Test
  void nothingIsLostOrDoneTwice() throws Exception {
    int tasks = 20_000;
    AtomicInteger done = new AtomicInteger();
    CountDownLatch all = new CountDownLatch(tasks);
    try (ThreadPoolExecutor pool = new ThreadPoolExecutor(8, 8, 0, TimeUnit.SECONDS, queue)) {
      for (int i = 0; i < tasks; i++) {
        pool.execute(
            () -> {
              done.incrementAndGet();
              all.countDown();
            });
        if (i % 1_000 == 0) {
          pool.setCorePoolSize(1 + i / 1_000 % 8);
        }
      }
      assertThat(all.await(30, TimeUnit.SECONDS)).isTrue();
    }
    assertThat(done).hasValue(tasks);
    assertThat(queue).isEmpty();
  }

  /** Waits until the thread waits in the queue, without a time limit. */
  private void awaitParked(Thread thread) throws InterruptedException {
    while (thread.getState() != Thread.State.WAITING
        || !queue.equals(LockSupport.getBlocker(thread))) {
      Thread.sleep(1);
    }
  }
}
