package lab.executors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class WorkloadTest {
  @ParameterizedTest
  @EnumSource
  void takesNoLessThanTheBoundAndTellsWhere(ExecutorKind kind) throws Exception {
    Duration sleep = Duration.ofMillis(20);
    try (ExecutorService executor = kind.open(2)) {
      Workload.Times times = new Workload(5, sleep).run(executor);
      assertThat(times.elapsed()).isGreaterThanOrEqualTo(kind.bound(5, sleep, 2));
      assertThat(times.submitted()).isPositive().isLessThanOrEqualTo(times.elapsed());
      assertThat(times.firstStart()).isPositive().isLessThanOrEqualTo(times.lastStart());
      assertThat(times.firstWake()).isGreaterThanOrEqualTo(times.firstStart().plus(sleep));
      assertThat(times.lastWake())
          .isGreaterThanOrEqualTo(times.lastStart().plus(sleep))
          .isLessThanOrEqualTo(times.elapsed());
    }
  }

  @Test
  void theLastTaskOfAPoolStartsWhenAThreadIsFree() throws Exception {
    Duration sleep = Duration.ofMillis(20);
    try (ExecutorService executor = ExecutorKind.FIXED_POOL.open(1)) {
      Workload.Times times = new Workload(3, sleep).run(executor);
      assertThat(times.lastStart())
          .isGreaterThanOrEqualTo(times.firstStart().plus(sleep.multipliedBy(2)));
    }
  }

  @Test
  void aTaskThatDidNotSleepToItsEndIsAnError() {
    try (ExecutorService real = Executors.newCachedThreadPool();
        ExecutorService interrupting = new Interrupting(real)) {
      assertThatThrownBy(() -> new Workload(3, Duration.ofSeconds(60)).run(interrupting))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("3 tasks were interrupted");
    }
  }

  /** Runs every task on a thread that is interrupted already. */
  private static final class Interrupting extends AbstractExecutorService {
    private final ExecutorService real;

    Interrupting(ExecutorService real) {
      this.real = real;
    }

    @Override
    public void execute(Runnable task) {
      real.execute(
          () -> {
            Thread.currentThread().interrupt();
            task.run();
          });
    }

    @Override
    public void shutdown() {
      real.shutdown();
    }

    @Override
    public List<Runnable> shutdownNow() {
      return real.shutdownNow();
    }

    @Override
    public boolean isShutdown() {
      return real.isShutdown();
    }

    @Override
    public boolean isTerminated() {
      return real.isTerminated();
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) throws InterruptedException {
      return real.awaitTermination(timeout, unit);
    }
  }
}
