package lab.netty;

import io.netty.channel.EventLoop;
import io.netty.util.concurrent.SingleThreadEventExecutor;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import lab.observe.LoopMetrics;
import lab.observe.SelectorClock;
import org.jspecify.annotations.Nullable;

/** One event loop with its connections. Its thread only, where nothing else is said. */
public final class Loop implements LoopMetrics.Observed {
  private static final Logger LOG = System.getLogger(Loop.class.getName());

  private final String name;
  private final EventLoop executor;
  private final LoopIo io;
  private final Set<Connection> connections = new HashSet<>();

  /** Read by any thread, written by this loop's alone. */
  private final AtomicInteger open = new AtomicInteger();

  private final AtomicInteger idle = new AtomicInteger();
  private boolean draining;

  /** Counted down once, when the last connection has closed. */
  private @Nullable CountDownLatch whenEmpty;

  Loop(String name, EventLoop executor, LoopIo io) {
    this.name = name;
    this.executor = executor;
    this.io = io;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public long busyNanos() {
    return io.busyNanos();
  }

  /**
   * Tasks of other threads, such as answers to be written. Requests are not among them: Netty
   * begins with one as soon as it has read it, so those that wait are still unread. Two indices of
   * a lock-free queue are compared, which any thread may do at any time.
   */
  @Override
  public OptionalInt queueDepth() {
    return executor instanceof SingleThreadEventExecutor loop
        ? OptionalInt.of(loop.pendingTasks())
        : OptionalInt.empty();
  }

  /** Client connections open, in flight or idle. Any thread. */
  int openConnections() {
    return open.get();
  }

  /** Connections that wait for another request. Any thread. */
  int idleConnections() {
    return idle.get();
  }

  /** What runs its tasks. Any thread. */
  public EventLoop executor() {
    return executor;
  }

  /** Of its selector. */
  public SelectorClock clock() {
    return io.clock();
  }

  void opened(Connection connection) {
    var _ = connections.add(connection);
    open.lazySet(connections.size());
  }

  void closed(Connection connection) {
    var _ = connections.remove(connection);
    open.lazySet(connections.size());
    tellWhenEmpty();
  }

  void addIdle(int more) {
    idle.lazySet(idle.get() + more);
  }

  /** Whether the server is stopping: every connection is closed with its answer. */
  boolean isDraining() {
    return draining;
  }

  /** Closes, at every tick, what has waited for its client for longer than that. Any thread. */
  void sweep(long timeoutNanos, long tickNanos) {
    every(
        tickNanos,
        () -> {
          long now = System.nanoTime();
          for (Connection each : List.copyOf(connections)) {
            each.closeIfQuiet(now, timeoutNanos);
          }
        });
  }

  /** Runs it on the loop at even times. What throws would be Netty's last time. Any thread. */
  public void every(long nanos, Runnable task) {
    var _ =
        executor.scheduleAtFixedRate(
            () -> {
              try {
                task.run();
              } catch (RuntimeException | Error e) {
                LOG.log(Level.ERROR, "a bug: what a loop does again and again failed", e);
              }
            },
            nanos,
            nanos,
            TimeUnit.NANOSECONDS);
  }

  /**
   * Closes what is idle, and each other connection with its answer. Any thread, once.
   *
   * @param latch counted down once, when no connection is left
   */
  void drain(CountDownLatch latch) {
    executor.execute(
        () -> {
          draining = true;
          whenEmpty = latch;
          List.copyOf(connections).forEach(Connection::closeIfIdle);
          tellWhenEmpty();
        });
  }

  private void tellWhenEmpty() {
    CountDownLatch latch = whenEmpty;
    if (latch != null && connections.isEmpty()) {
      whenEmpty = null;
      latch.countDown();
    }
  }
}
