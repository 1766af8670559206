package lab.jmh;

import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import lab.observe.RequestMetrics;
import lab.spec.Outcome;
import lab.spec.Route;
import lab.work.ConnectionCap;
import lab.work.blocking.Watchdog;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Threads;
import org.openjdk.jmh.annotations.Warmup;

/** What a request costs in what all threads of a server share: alone, and beside another thread. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class Sharing {
  /** Every lane's. */
  @State(Scope.Benchmark)
  public static class Server {
    private final ConnectionCap cap = new ConnectionCap(20_000);
    private final RequestMetrics requests = new RequestMetrics(new PrometheusRegistry());
  }

  /** Of lanes on threads: lists of deadlines, one for all threads or one for each of two. */
  @State(Scope.Benchmark)
  public static class Deadlines {
    @Param({"1", "2"})
    public int lists;

    private final AtomicInteger dealt = new AtomicInteger();
    private List<Watchdog> watchdogs = List.of();

    /** Their threads sleep. */
    @Setup
    public void start() {
      watchdogs = IntStream.range(0, lists).mapToObj(i -> new Watchdog("deadlines-" + i)).toList();
    }

    /** Ends them. */
    @TearDown
    public void close() {
      watchdogs.forEach(Watchdog::close);
    }
  }

  /** A thread's call that is never late. */
  @State(Scope.Thread)
  public static class Call extends Watchdog.Watched {
    private int list;

    /** Each thread has the next list. */
    @Setup
    public void choose(Deadlines deadlines) {
      list = deadlines.dealt.getAndIncrement() % deadlines.lists;
    }

    @Override
    protected void breakOff() {
      throw new IllegalStateException("an hour has passed");
    }
  }

  @Benchmark
  @Threads(1)
  public boolean placeAlone(Server server) {
    return place(server);
  }

  @Benchmark
  @Threads(2)
  public boolean placeBesideAnother(Server server) {
    return place(server);
  }

  @Benchmark
  @Threads(1)
  public void countedAlone(Server server) {
    count(server);
  }

  @Benchmark
  @Threads(2)
  public void countedBesideAnother(Server server) {
    count(server);
  }

  @Benchmark
  @Threads(1)
  public boolean deadlineAlone(Deadlines deadlines, Call call) {
    return watched(deadlines, call);
  }

  @Benchmark
  @Threads(2)
  public boolean deadlineBesideAnother(Deadlines deadlines, Call call) {
    return watched(deadlines, call);
  }

  private static boolean place(Server server) {
    boolean entered = server.cap.tryEnter();
    server.cap.leave();
    return entered;
  }

  private static void count(Server server) {
    server.requests.begun(Route.DOWNSTREAM);
    server.requests.ended(Route.DOWNSTREAM, Outcome.OK, 10_000, 200_000_000);
  }

  private static boolean watched(Deadlines deadlines, Call call) {
    Watchdog watchdog = deadlines.watchdogs.get(call.list);
    watchdog.watch(call, System.nanoTime() + 3_600_000_000_000L);
    return watchdog.forget(call);
  }
}
