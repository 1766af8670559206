package lab.work.faults;

import static org.assertj.core.api.Assertions.assertThat;

import lab.shell.TestContext;
import org.junit.jupiter.api.Test;

class OneLockTest {
  @Test
  void oneHoldsItAndAnotherWaitsUntilItIsOff() throws Exception {
    try (TestContext context = new TestContext()) {
      OneLock lock = new OneLock(context.model().knobs());
      lock.hold(); // Off: returns at once.
      context.change("lock_ms", 60_000);
      Thread holder = holding(lock, Thread.State.TIMED_WAITING);
      Thread waiter = holding(lock, Thread.State.WAITING);
      context.change("lock_ms", 0);
      lock.hold(); // Off again, also while another one has it.
      holder.interrupt();
      waiter.interrupt();
      holder.join();
      waiter.join();
      assertThat(holder.isAlive() || waiter.isAlive()).isFalse();
    }
  }

  /** A thread that asked for the lock and came to this state. */
  private static Thread holding(OneLock lock, Thread.State state) {
    Thread thread =
        Thread.ofPlatform()
            .start(
                () -> {
                  try {
                    lock.hold();
                  } catch (InterruptedException e) {
                    // The end of the test.
                  }
                });
    while (thread.getState() != state) {
      Thread.onSpinWait();
    }
    return thread;
  }
}
