package lab.netty;

import io.netty.channel.IoEventLoopGroup;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.SingleThreadIoEventLoop;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.ServerSocketChannel;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.util.concurrent.FastThreadLocalThread;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.OptionalInt;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import lab.observe.LoopMetrics;
import lab.observe.SelectorClock;
import lab.work.nonblocking.LoopServices;

/**
 * One of Netty's event loops, and what is measured on it: how long it works, and since when what it
 * reads has been there. Netty reports how long a turn's I/O took when it is over; that it has begun
 * is known when the first connection reads. Its thread only, where nothing else is said.
 *
 * <pre>
 *   runIo --&gt; select --&gt; read, write --&gt; tasks, timers --&gt; runIo
 *           (waiting)   '-------- at work --------'
 * </pre>
 */
public final class Loop extends SingleThreadIoEventLoop
    implements LoopMetrics.Observed, LoopServices {
  private static final Logger LOG = System.getLogger(Loop.class.getName());

  private final String name;
  private final SelectorClock clock = new SelectorClock(System.nanoTime());

  /** True if something was read since the selector was asked last. */
  private boolean hasRead;

  /** How long the I/O of the last turn took. */
  private long ioNanos;

  /** Work of the turns that have ended. Written by the loop alone, as the next one. */
  private volatile long busyNanos;

  /** Since when the loop is at work; 0 while it waits. */
  private volatile long busySinceNanos;

  private long reportedNanos;

  Loop(IoEventLoopGroup parent, String name, IoHandlerFactory io) {
    super(parent, (ThreadFactory) task -> new FastThreadLocalThread(task, name), io);
    this.name = name;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public synchronized long busyNanos() {
    // In this order, and runIo() writes in the other: a turn that ends in between is missed until
    // the next call, never doubled.
    long ended = busyNanos;
    long since = busySinceNanos;
    long busy = since == 0 ? ended : ended + System.nanoTime() - since;
    reportedNanos = Math.max(reportedNanos, busy);
    return reportedNanos;
  }

  /** Tasks of other threads, such as answers. Requests that wait are unread in their sockets. */
  @Override
  public OptionalInt queueDepth() {
    return OptionalInt.of(pendingTasks());
  }

  @Override
  protected int runIo() {
    long asked = System.nanoTime();
    long since = busySinceNanos;
    busySinceNanos = 0;
    if (since != 0) {
      busyNanos = busyNanos + asked - since;
    }
    boolean waits = !hasTasks() && !hasScheduledTasks();
    if (!waits) {
      // To ask without waiting is work.
      busySinceNanos = asked;
    }
    clock.asked(asked);
    hasRead = false;
    ioNanos = 0;
    int handled = super.runIo();
    reads();
    if (waits) {
      busySinceNanos = System.nanoTime() - ioNanos;
    }
    // A selection of Netty's own transport grows with what it finds: it leaves nothing.
    clock.took(isIoType(NioIoHandler.class) ? handled : 0);
    return handled;
  }

  @Override
  protected void reportActiveIoTime(long nanos) {
    super.reportActiveIoTime(nanos);
    ioNanos = nanos;
  }

  @Override
  public Pending after(long nanos, Runnable then) {
    var timer = schedule(then, nanos, TimeUnit.NANOSECONDS);
    return () -> timer.cancel(false);
  }

  @Override
  public long readyNanos(long earliestNanos) {
    return clock.readyNanos(earliestNanos);
  }

  /** A connection reads: the selector has returned. */
  public void reads() {
    if (!hasRead) {
      hasRead = true;
      long now = System.nanoTime();
      clock.selected(now);
      if (busySinceNanos == 0) {
        busySinceNanos = now;
      }
    }
  }

  public SelectorClock clock() {
    return clock;
  }

  /** A server's socket on such a loop. Any thread. */
  Class<? extends ServerSocketChannel> listenerType() {
    return isIoType(EpollIoHandler.class)
        ? EpollServerSocketChannel.class
        : NioServerSocketChannel.class;
  }

  /** A client's socket on such a loop. Any thread. */
  public Class<? extends SocketChannel> socketType() {
    return isIoType(EpollIoHandler.class) ? EpollSocketChannel.class : NioSocketChannel.class;
  }

  /** Runs it on the loop at even times. What throws would be Netty's last time. Any thread. */
  public void every(long nanos, Runnable task) {
    var _ =
        scheduleAtFixedRate(
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
}
