package lab.jmh;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * 10,000 tasks that sleep 100 ms, on a pool of 200 platform threads and on virtual threads.
 *
 * <p>Lower bounds: the pool sleeps in ceil(tasks / threads) rounds (5,000 ms), virtual threads all
 * at once (100 ms). What is above them is the price of starting and waking threads.
 *
 * <p>Every figure is of a fresh JVM. <em>Cold</em>: no task has run. <em>Aot</em>: no task has run,
 * but classes and method profiles come from the cache of a training run ({@link Main}, JEP 483, 514
 * and 515). <em>Warm</em>: identical rounds ran before, 20 on virtual threads and one on the pool,
 * which sleeps 5 s in it.
 */
@BenchmarkMode(Mode.SingleShotTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Warmup(iterations = 0)
@Measurement(iterations = 1)
@Fork(6)
public class SleepingTasks {
  static final String POOL_CACHE = "/tmp/fixed-pool.aot";
  static final String VIRTUAL_CACHE = "/tmp/virtual-threads.aot";

  /** The tasks, and the executor that runs them. It is open before the clock starts. */
  @State(Scope.Benchmark)
  public abstract static class Tasks {
    /** How many. */
    @Param("10000")
    public int tasks;

    /** How long each of them sleeps. */
    @Param("100")
    public int sleepMs;

    private final ExecutorService executor;
    private final int threads;
    private final AtomicInteger started = new AtomicInteger();
    private final AtomicInteger woken = new AtomicInteger();

    /** At most {@code threads} of the tasks sleep at once. */
    Tasks(ExecutorService executor, int threads) {
      this.executor = executor;
      this.threads = threads;
    }

    /** Ends the threads. */
    @TearDown
    public void close() {
      executor.close();
    }

    /** Hands all tasks over and waits until the last is done. */
    void run() throws InterruptedException {
      CountDownLatch left = new CountDownLatch(tasks);
      started.set(0);
      woken.set(0);
      int crowd = Math.min(tasks, threads);
      for (int i = 0; i < tasks; i++) {
        executor.execute(() -> sleep(crowd, left));
      }
      left.await();
      if (woken.get() < tasks) {
        throw new IllegalStateException(tasks - woken.get() + " tasks were interrupted");
      }
    }

    private void sleep(int crowd, CountDownLatch left) {
      try {
        if (started.incrementAndGet() == crowd) {
          MemoryProfiler.whileAsleep(() -> started.get() - woken.get());
        }
        Thread.sleep(sleepMs);
        woken.incrementAndGet();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      } finally {
        left.countDown();
      }
    }
  }

  /** {@code newFixedThreadPool}. */
  @State(Scope.Benchmark)
  public static class FixedPool extends Tasks {
    private static final int THREADS = 200;

    /** Starts no thread yet. */
    public FixedPool() {
      super(Executors.newFixedThreadPool(THREADS), THREADS);
    }
  }

  /** {@code newVirtualThreadPerTaskExecutor}. */
  @State(Scope.Benchmark)
  public static class VirtualThreads extends Tasks {
    /** Starts no thread yet. */
    public VirtualThreads() {
      super(Executors.newVirtualThreadPerTaskExecutor(), Integer.MAX_VALUE);
    }
  }

  /** The pool in a JVM in which no task has run. */
  @Benchmark
  public void fixedPoolCold(FixedPool pool) throws InterruptedException {
    pool.run();
  }

  /** The pool in such a JVM with an AOT cache; a cache that does not fit ends the JVM. */
  @Benchmark
  @Fork(
      value = 6,
      jvmArgsAppend = {"-XX:AOTCache=" + POOL_CACHE, "-XX:AOTMode=on"})
  public void fixedPoolAot(FixedPool pool) throws InterruptedException {
    pool.run();
  }

  /** The pool after one round. */
  @Benchmark
  @Warmup(iterations = 1)
  public void fixedPoolWarm(FixedPool pool) throws InterruptedException {
    pool.run();
  }

  /** Virtual threads in a JVM in which no task has run. */
  @Benchmark
  public void virtualThreadsCold(VirtualThreads threads) throws InterruptedException {
    threads.run();
  }

  /** Virtual threads in such a JVM with an AOT cache. */
  @Benchmark
  @Fork(
      value = 6,
      jvmArgsAppend = {"-XX:AOTCache=" + VIRTUAL_CACHE, "-XX:AOTMode=on"})
  public void virtualThreadsAot(VirtualThreads threads) throws InterruptedException {
    threads.run();
  }

  /** Virtual threads after 20 rounds. */
  @Benchmark
  @Warmup(iterations = 20)
  public void virtualThreadsWarm(VirtualThreads threads) throws InterruptedException {
    threads.run();
  }
}
