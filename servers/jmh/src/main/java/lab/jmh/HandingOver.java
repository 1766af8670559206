package lab.jmh;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** What it costs to have work done by another thread. The work itself is nothing. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
@State(Scope.Benchmark)
public class HandingOver {
  private static final int TASKS = 1000;
  private static final int THREADS = 200;

  /** To whom. */
  @Param({"fixed-pool", "virtual-threads"})
  public String executor = "";

  private ExecutorService to = Executors.newVirtualThreadPerTaskExecutor();

  /** Opens the executor; a pool starts its threads with the first tasks. */
  @Setup
  public void open() {
    if (executor.equals("fixed-pool")) {
      to = Executors.newFixedThreadPool(THREADS);
    }
  }

  /** Ends its threads. */
  @TearDown
  public void close() {
    to.close();
  }

  /** One task, and the wait for its result: what a single caller sees. */
  @Benchmark
  public Integer oneTaskAndItsResult() throws ExecutionException, InterruptedException {
    return to.submit(() -> 1).get();
  }

  /** One of many tasks that are handed over at once. */
  @Benchmark
  @OperationsPerInvocation(TASKS)
  public void oneOfAThousandTasks() throws InterruptedException {
    CountDownLatch left = new CountDownLatch(TASKS);
    for (int i = 0; i < TASKS; i++) {
      to.execute(left::countDown);
    }
    left.await();
  }
}
