package lab.netty;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoHandle;
import io.netty.channel.IoHandler;
import io.netty.channel.IoHandlerContext;
import io.netty.channel.IoRegistration;
import org.junit.jupiter.api.Test;

class LoopIoTest {
  private final IoHandlerContext context =
      new IoHandlerContext() {
        @Override
        public boolean canBlock() {
          return mayWait;
        }

        @Override
        public long delayNanos(long currentTimeNanos) {
          return 0;
        }

        @Override
        public long deadlineNanos() {
          return -1;
        }
      };

  private boolean mayWait = true;
  private long now = 1_000;
  private final LoopIo io = new LoopIo(new FakeNio(), () -> now);

  @Test
  void waitingInTheSelectorIsNotWork() {
    var _ = io.run(context);
    assertThat(io.clock().selectedNanos()).isEqualTo(1_100);
    now += 30; // Tasks and timers.
    assertThat(io.busyNanos()).isEqualTo(7 + 30);
    var _ = io.run(context);
    assertThat(io.busyNanos()).isEqualTo(2 * 7 + 30);
  }

  @Test
  void askingASelectorThatMayNotWaitIsWork() {
    mayWait = false;
    var _ = io.run(context);
    assertThat(io.clock().selectedNanos()).isEqualTo(1_100);
    assertThat(io.busyNanos()).isEqualTo(100 + 7);
    now += 30; // Tasks.
    var _ = io.run(context);
    assertThat(io.busyNanos()).isEqualTo(2 * (100 + 7) + 30);
  }

  @Test
  void workUnderWayIsCounted() {
    var _ = io.run(context);
    now += 1_000_000;
    assertThat(io.busyNanos()).isEqualTo(1_000_007);
  }

  @Test
  void aLoopThatNeverRanHasNotWorked() {
    now += 1_000_000;
    assertThat(io.busyNanos()).isZero();
  }

  @Test
  void theClockOfItsSelectorKnowsWhenItWasAsked() {
    var _ = io.run(context);
    now += 1_000_000; // Tasks and timers: 1,100 + 7 + 1,000,000.
    var _ = io.run(context);
    assertThat(io.clock().selectedNanos()).isEqualTo(1_001_207);
    assertThat(io.clock().readyNanos()).isEqualTo((1_100 + 1_001_207) / 2);
  }

  /** Waits 100 ns for something to be ready, then reads for 7 ns. */
  private final class FakeNio implements IoHandler {
    @Override
    public int run(IoHandlerContext context) {
      now += 100;
      if (context.shouldReportActiveIoTime()) {
        throw new AssertionError("the loop did not ask for it");
      }
      now += 7;
      return 1;
    }

    @Override
    public IoRegistration register(IoHandle handle) {
      throw new UnsupportedOperationException();
    }

    @Override
    public void wakeup() {}

    @Override
    public boolean isCompatible(Class<? extends IoHandle> handleType) {
      return false;
    }
  }
}
