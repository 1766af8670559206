package lab.jmh;

import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Warmup;

/**
 * What it costs that a thread stops and goes on.
 *
 * <p>One carrier: what is measured is a switch, and not how two CPUs wake each other.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(value = 3, jvmArgsAppend = "-Djdk.virtualThreadScheduler.parallelism=1")
public class Switching {
  private static final int TURNS = 10_000;

  /** A virtual thread leaves its carrier and gets it back: one unmount, one mount. */
  @Benchmark
  @OperationsPerInvocation(TURNS)
  @SuppressWarnings("ThreadPriorityCheck") // It is what is measured.
  public void virtualThreadYields() throws InterruptedException {
    Thread thread =
        Thread.startVirtualThread(
            () -> {
              for (int i = 0; i < TURNS; i++) {
                Thread.yield();
              }
            });
    thread.join();
  }

  /** Two virtual threads wake each other: a round trip of two parks and two unparks. */
  @Benchmark
  @OperationsPerInvocation(TURNS)
  public void virtualThreadsWakeEachOther() throws InterruptedException {
    wakeEachOther(Thread.ofVirtual().factory());
  }

  /** The same with platform threads, which the kernel switches, on all CPUs. */
  @Benchmark
  @OperationsPerInvocation(TURNS)
  public void platformThreadsWakeEachOther() throws InterruptedException {
    wakeEachOther(Thread.ofPlatform().factory());
  }

  private static void wakeEachOther(ThreadFactory factory) throws InterruptedException {
    Player first = new Player();
    Player second = new Player();
    Thread one = factory.newThread(() -> first.play(TURNS));
    Thread other = factory.newThread(() -> second.play(TURNS));
    first.partner = second;
    first.partnersThread = other;
    second.partner = first;
    second.partnersThread = one;
    first.turn = true;
    one.start();
    other.start();
    one.join();
    other.join();
  }

  /** Waits for its turn, then gives it away. Its fields but the turn are set before it starts. */
  private static final class Player {
    private Player partner = this;
    private Thread partnersThread = Thread.currentThread();
    private volatile boolean turn;

    void play(int turns) {
      for (int i = 0; i < turns; i++) {
        while (!turn) {
          LockSupport.park(this);
        }
        turn = false;
        partner.turn = true;
        LockSupport.unpark(partnersThread);
      }
    }
  }
}
