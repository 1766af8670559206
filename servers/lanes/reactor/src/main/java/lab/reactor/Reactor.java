package lab.reactor;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.Stream;
import lab.observe.LoopProbe;
import lab.wire.RequestHead;
import org.jspecify.annotations.Nullable;

/**
 * One thread that accepts, reads and parses for its share of the connections.
 *
 * <pre>
 *   +--&gt; select ----ready keys----&gt; read, parse, write; whole requests are handled
 *   |      |                                        |
 *   |      '--nothing before the next timer--.      |
 *   |                                        v      v
 *   |                             timers due, tasks handed in by other threads
 *   |                                        |
 *   '--------------------------------- the lane's own work, if it has any
 * </pre>
 */
public abstract class Reactor implements Runnable {
  /** What is attached to a selection key. Called on the reactor's thread. */
  public interface Ready {
    /** The channel can do one or more of what was waited for; must not block. */
    void ready(SelectionKey key) throws IOException;

    /** {@link #ready} has failed: the channel is to be given up. */
    void lost(IOException reason);
  }

  private static final Logger LOG = System.getLogger(Reactor.class.getName());
  private static final long SWEEP_NANOS = 1_000_000_000;
  private static final int BUFFER_BYTES = 64 << 10;

  private final String name;
  final ReactorGroup group;
  private final Selector selector = Selector.open();
  private final Consumer<SelectionKey> dispatch = this::dispatch;
  private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
  private final Timers timers = new Timers();
  private final LoopProbe probe = new LoopProbe();
  final RequestHead requestHead = new RequestHead();

  /** One of each for all connections: none has one while it is idle. */
  private final ByteBuffer readBuffer = ByteBuffer.allocateDirect(BUFFER_BYTES);

  private final byte[] input = new byte[BUFFER_BYTES];

  private @Nullable Acceptor acceptor;
  private boolean graceOver;
  private volatile boolean stopping;

  /** Set by the thread itself. Another thread reads null or this one, and is equal to neither. */
  private @Nullable Thread thread;

  /** Written by the reactor only. */
  private final AtomicInteger open = new AtomicInteger();

  protected Reactor(String name, ReactorGroup group) throws IOException {
    this.name = name;
    this.group = group;
  }

  // --- of the lane, on the reactor's thread ----------------------------------------------------

  /** Takes a whole request that was taken on. Must not block. */
  protected abstract void handle(Exchange exchange) throws IOException;

  /** True if there is work of the lane's own: then the selector is only asked. */
  protected boolean hasWork() {
    return false;
  }

  protected void work() {}

  /** A second has passed. */
  protected void sweep(long nowNanos) {}

  // --- any thread ------------------------------------------------------------------------------

  public final String name() {
    return name;
  }

  public final LoopProbe probe() {
    return probe;
  }

  public final int openConnections() {
    return open.get();
  }

  public final boolean isStopping() {
    return stopping;
  }

  /** Runs a task on the reactor's thread, in this turn or the next. */
  public final void execute(Runnable task) {
    tasks.add(task);
    // It looks at the tasks before it waits.
    if (!Thread.currentThread().equals(thread)) {
      selector.wakeup();
    }
  }

  /** Runs a task on the reactor's thread: at once if this is it. */
  public final void runSoon(Runnable task) {
    if (Thread.currentThread().equals(thread)) {
      task.run();
    } else {
      execute(task);
    }
  }

  /** Takes no connections any more, and ends when the last request has, or after the grace. */
  final void stop(Duration grace) {
    stopping = true;
    execute(
        () -> {
          if (acceptor != null) {
            acceptor.close();
          }
          connections().forEach(Connection::stop);
          timers.set(timers.timer(() -> graceOver = true), System.nanoTime() + grace.toNanos());
        });
  }

  // --- its thread ------------------------------------------------------------------------------

  @Override
  public final void run() {
    thread = Thread.currentThread();
    try {
      timers.set(timers.timer(this::sweepAndGoOn), System.nanoTime() + SWEEP_NANOS);
      // Of the tasks one may bring a connection, which would never be closed.
      while (!(stopping && open.getPlain() == 0 && tasks.isEmpty()) && !graceOver) {
        turn();
      }
      end();
    } catch (Throwable e) {
      // The only way out for what nobody expected: a server without it must not look alive.
      try {
        LOG.log(Level.ERROR, name + " is broken, the server ends", e);
      } finally {
        group.broken();
      }
    }
  }

  public final void turn() throws IOException {
    long before = System.nanoTime();
    long wait = hasWork() || !tasks.isEmpty() ? 0 : timers.millisToNext(before);
    probe.asks(before, wait != 0);
    int keys =
        wait == 0 ? selector.selectNow(dispatch) : selector.select(dispatch, Math.max(0, wait));
    probe.took(keys);
    timers.callDue(System.nanoTime());
    for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
      task.run();
    }
    work();
  }

  private void dispatch(SelectionKey key) {
    probe.returned();
    if (!key.isValid()) {
      // Closed by what another key of the same selection led to.
      return;
    }
    Ready ready = (Ready) key.attachment();
    try {
      ready.ready(key);
    } catch (IOException e) {
      lose(key, ready, e);
    } catch (RuntimeException e) {
      LOG.log(Level.ERROR, "a bug: one connection is given up", e);
      lose(key, ready, new IOException(e));
    }
  }

  /** What is thrown here is still one connection's fault, and breaks no other. */
  private static void lose(SelectionKey key, Ready ready, IOException reason) {
    try {
      ready.lost(reason);
    } catch (RuntimeException e) {
      LOG.log(Level.ERROR, "a bug: a connection that is lost is only closed", e);
      close(key.channel());
    }
  }

  private void sweepAndGoOn() {
    long now = System.nanoTime();
    long timeoutNanos = group.settings.keepAliveTimeout().toNanos();
    connections().forEach(connection -> connection.closeIfQuiet(now, timeoutNanos));
    sweep(now);
    timers.set(timers.timer(this::sweepAndGoOn), now + SWEEP_NANOS);
  }

  private Stream<Connection> connections() {
    return selector.keys().stream()
        .map(SelectionKey::attachment)
        .filter(Connection.class::isInstance)
        .map(Connection.class::cast);
  }

  private void end() throws IOException {
    if (open.getPlain() > 0) {
      LOG.log(Level.WARNING, "{0} stopped with {1} connections unfinished", name, open.getPlain());
    }
    for (SelectionKey key : selector.keys()) {
      close(key.channel());
    }
    // Frees the descriptors of what was registered.
    selector.close();
  }

  /** Listens here and deals the connections out. Called before any of them runs. */
  public final void listen(ServerSocketChannel listener, List<? extends Reactor> all)
      throws IOException {
    SelectionKey key = listener.register(selector, SelectionKey.OP_ACCEPT);
    acceptor = new Acceptor(listener, key, all);
    key.attach(acceptor);
  }

  public final void adopt(SocketChannel channel) {
    boolean adopted = false;
    try {
      if (!stopping) {
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        SelectionKey key = channel.register(selector, SelectionKey.OP_READ);
        key.attach(new Connection(this, channel, key));
        open.setOpaque(open.getPlain() + 1);
        adopted = true;
      }
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "the client was gone at once", e);
    } finally {
      if (!adopted) {
        close(channel);
      }
    }
  }

  private static void close(java.nio.channels.Channel channel) {
    try {
      channel.close();
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "a channel could not be closed", e);
    }
  }

  // --- what it offers to its parts, on its thread ----------------------------------------------

  final void closed() {
    open.setOpaque(open.getPlain() - 1);
  }

  public final Selector selector() {
    return selector;
  }

  public final Timers timers() {
    return timers;
  }

  /** Reads once into {@link #input}, from its start; returns how many bytes, or -1 at the end. */
  public final int fill(SocketChannel channel) throws IOException {
    int count = channel.read(readBuffer.clear());
    if (count > 0) {
      readBuffer.get(0, input, 0, count);
    }
    return count;
  }

  /** What was read last; the next {@link #fill} writes over it. */
  public final byte[] input() {
    return input;
  }

  /** Takes connections off the accept queue and deals them out to the reactors in turn. */
  private final class Acceptor implements Ready {
    /** So that a flood of connections does not hold up those that are there. */
    private static final int MOST_AT_ONCE = 256;

    private static final long PAUSE_NANOS = 100_000_000;

    private final ServerSocketChannel listener;
    private final SelectionKey key;
    private final List<? extends Reactor> reactors;
    private final Timers.Timer pause = timers.timer(this::goOn);
    private int next;

    Acceptor(ServerSocketChannel listener, SelectionKey key, List<? extends Reactor> reactors) {
      this.listener = listener;
      this.key = key;
      this.reactors = reactors;
    }

    @Override
    public void ready(SelectionKey selected) throws IOException {
      for (int i = 0; i < MOST_AT_ONCE; i++) {
        SocketChannel channel = listener.accept();
        if (channel == null) {
          return;
        }
        Reactor to = reactors.get(next++ % reactors.size());
        if (to.isStopping()) {
          // It may have ended.
          Reactor.close(channel);
        } else {
          to.runSoon(() -> to.adopt(channel));
        }
      }
    }

    /** Most likely out of file descriptors: to ask again at once would only burn CPU time. */
    @Override
    public void lost(IOException reason) {
      if (listener.isOpen()) {
        // Whatever becomes of the line of the log: this goes on.
        SelectionKey unused = key.interestOps(0);
        timers.set(pause, System.nanoTime() + PAUSE_NANOS);
        LOG.log(Level.WARNING, "cannot accept for now: {0}", reason.getMessage());
      }
    }

    private void goOn() {
      if (key.isValid()) {
        SelectionKey unused = key.interestOps(SelectionKey.OP_ACCEPT);
      }
    }

    /** The port is free when the reactor has selected once more. */
    void close() {
      try {
        listener.close();
      } catch (IOException e) {
        LOG.log(Level.WARNING, "the listener could not be closed", e);
      }
    }
  }
}
