package lab.jmh;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.StructuredTaskScope;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** What it costs to do three things at once and wait for all. The things themselves are nothing. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
@State(Scope.Benchmark)
public class Scopes {
  private final ExecutorService virtualThreads = Executors.newVirtualThreadPerTaskExecutor();

  /** Ends the executor. */
  @TearDown
  public void close() {
    virtualThreads.close();
  }

  /** Structured concurrency (JEP 505): a scope is opened, forks three, joins and is closed. */
  @Benchmark
  public int structuredScopeOfThree() throws InterruptedException {
    try (var scope = StructuredTaskScope.open()) {
      var first = scope.fork(() -> 1);
      var second = scope.fork(() -> 2);
      var third = scope.fork(() -> 3);
      scope.join();
      return first.get() + second.get() + third.get();
    }
  }

  /** The same by CompletableFuture, on virtual threads too. */
  @Benchmark
  public int threeFutures() {
    var first = CompletableFuture.supplyAsync(() -> 1, virtualThreads);
    var second = CompletableFuture.supplyAsync(() -> 2, virtualThreads);
    var third = CompletableFuture.supplyAsync(() -> 3, virtualThreads);
    return first.join() + second.join() + third.join();
  }
}
