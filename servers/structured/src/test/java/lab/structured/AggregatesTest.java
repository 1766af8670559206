package lab.structured;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicBoolean;
import lab.spec.Answer;
import lab.spec.LineFile;
import org.junit.jupiter.api.Test;

/** A scope that is cancelled before all its branches are forked never starts the others. */
class AggregatesTest {
  /** In the order in which they were made, which is that of the forks. */
  private final List<Thread> made = new CopyOnWriteArrayList<>();

  @Test
  void aLoserThatNeverBeganIsCountedAsCancelled() throws Exception {
    AtomicBoolean loserBegan = new AtomicBoolean();
    ThreadFactory threads =
        task -> {
          if (made.size() == 2) {
            // The loser's turn: the broken branch and the winner are there. The winner ends first.
            join(made.get(1));
            return make(
                () -> {
                  loserBegan.set(true);
                  task.run();
                });
          }
          return make(task);
        };
    try (LineFile file = new LineFile()) {
      Answer answer = new Aggregates(file, threads).firstSuccess(1, 60_000);
      assertThat(answer.body())
          .asString(UTF_8)
          .isEqualTo("{\"winner\":\"fast\",\"failed\":1,\"cancelled\":1}");
      assertThat(loserBegan).isFalse();
    }
  }

  @Test
  void aWaitThatNeverBeganIsCountedAsCancelled() throws Exception {
    ThreadFactory threads =
        task -> {
          if (made.contains(Thread.currentThread())) {
            // A branch makes a thread: the wait. Its time is up long before it could begin; should
            // this machine be slower still, the wait begins and is interrupted, which counts alike.
            sleep(100);
          }
          return make(task);
        };
    try (LineFile file = new LineFile()) {
      Answer answer = new Aggregates(file, threads).aggregateWithFallback(60_000, 1, 2);
      assertThat(answer.body())
          .asString(UTF_8)
          .isEqualTo("{\"wait\":\"fallback\",\"lines\":2,\"characters\":94}");
    }
  }

  @Test
  void aLoserThatBeganIsCountedOnce() throws Exception {
    try (LineFile file = new LineFile()) {
      Answer answer = new Aggregates(file, this::make).firstSuccess(60_000, 20);
      assertThat(answer.body())
          .asString(UTF_8)
          .isEqualTo("{\"winner\":\"slow\",\"failed\":1,\"cancelled\":1}");
    }
  }

  private Thread make(Runnable task) {
    Thread thread = Thread.ofVirtual().unstarted(task);
    made.add(thread);
    return thread;
  }

  private static void join(Thread thread) {
    try {
      thread.join();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static void sleep(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
