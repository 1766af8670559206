package lab.netty;

import io.netty.channel.EventLoop;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** One event loop's connections. Its thread only, where nothing else is said. */
final class Loop {
  private final EventLoop executor;
  private final LoopIo io;
  private final Set<Connection> connections = new HashSet<>();

  /** Read by all loops, written by this one's thread alone. */
  private final AtomicInteger idle = new AtomicInteger();

  private @Nullable CountDownLatch drained;

  Loop(EventLoop executor, LoopIo io) {
    this.executor = executor;
    this.io = io;
  }

  EventLoop executor() {
    return executor;
  }

  LoopIo io() {
    return io;
  }

  void opened(Connection connection) {
    var _ = connections.add(connection);
  }

  void closed(Connection connection) {
    var _ = connections.remove(connection);
    if (drained != null && connections.isEmpty()) {
      drained.countDown();
    }
  }

  /** Connections that wait for another request, as last set by this loop. Any thread. */
  int idle() {
    return idle.get();
  }

  void addIdle(int more) {
    idle.lazySet(idle.get() + more);
  }

  boolean isDraining() {
    return drained != null;
  }

  /** Closes, at every tick, what has been idle for longer than the timeout. Any thread. */
  void sweep(long timeoutNanos, long tickNanos) {
    var _ =
        executor.scheduleAtFixedRate(
            () -> {
              long now = System.nanoTime();
              for (Connection each : List.copyOf(connections)) {
                each.closeIfIdleSince(now - timeoutNanos);
              }
            },
            tickNanos,
            tickNanos,
            TimeUnit.NANOSECONDS);
  }

  /** Closes what is idle, and each other connection with its answer. Any thread, once. */
  void drain(CountDownLatch whenEmpty) {
    executor.execute(
        () -> {
          drained = whenEmpty;
          for (Connection each : List.copyOf(connections)) {
            each.closeIfIdleSince(Long.MAX_VALUE);
          }
          if (connections.isEmpty()) {
            whenEmpty.countDown();
          }
        });
  }
}
