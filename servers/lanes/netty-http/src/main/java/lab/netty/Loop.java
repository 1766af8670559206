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
import lab.observe.LoopProbe;
import lab.work.nonblocking.LoopServices;

/**
 * One of Netty's event loops, and what is measured on it: how long it works, and since when what it
 * reads has been there. Netty reports how long a turn's I/O took when it is over; that it has begun
 * is known when the first connection reads. Its thread only, where nothing else is said.
 */
public final class Loop extends SingleThreadIoEventLoop
    implements LoopMetrics.Observed, LoopServices {
  private static final Logger LOG = System.getLogger(Loop.class.getName());

  private final String name;
  private final LoopProbe probe = new LoopProbe();

  /** How long the I/O of the last turn took. */
  private long ioNanos;

  Loop(IoEventLoopGroup parent, String name, IoHandlerFactory io) {
    super(parent, (ThreadFactory) task -> new FastThreadLocalThread(task, name), io);
    this.name = name;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public long busyNanos() {
    return probe.busyNanos();
  }

  /** Tasks of other threads, such as answers. Requests that wait are unread in their sockets. */
  @Override
  public OptionalInt queueDepth() {
    return OptionalInt.of(pendingTasks());
  }

  @Override
  protected int runIo() {
    boolean waits = !hasTasks() && !hasScheduledTasks();
    probe.asks(System.nanoTime(), waits);
    ioNanos = 0;
    int handled = super.runIo();
    // A selection of Netty's own transport grows with what it finds: it leaves nothing.
    probe.took(isIoType(NioIoHandler.class) ? handled : 0);
    if (waits) {
      probe.hasWorkedFor(ioNanos);
    }
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
    return probe.readyNanos(earliestNanos);
  }

  /** A connection that reads reports it to the probe. */
  public LoopProbe probe() {
    return probe;
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
