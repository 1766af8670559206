package lab.front;

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
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import lab.contract.SelectorClock;
import lab.wire.RequestHead;
import org.jspecify.annotations.Nullable;

/**
 * One thread that accepts connections, reads and parses whole requests, hands each to a worker, and
 * writes what a worker could not. It never works on a request.
 */
final class Front implements Runnable {
  private static final Logger LOG = System.getLogger(Front.class.getName());
  private static final int BUFFER_BYTES = 64 << 10;
  private static final long SWEEP_NANOS = 1_000_000_000;

  /** So that a flood of connections does not hold up those that are there. */
  private static final int MOST_ACCEPTS = 256;

  /** After a failed accept, most likely for want of file descriptors. */
  private static final long PAUSE_NANOS = 100_000_000;

  private final String name;
  private final FrontServer server;
  private final Selector selector = Selector.open();
  private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
  private final RequestHead requestHead = new RequestHead();
  private final SelectorClock clock = new SelectorClock(System.nanoTime());

  /** One of each for all connections: none has one while it is idle. */
  private final ByteBuffer readBuffer = ByteBuffer.allocateDirect(BUFFER_BYTES);

  private final byte[] input = new byte[BUFFER_BYTES];

  private @Nullable SelectionKey listening;
  private List<Front> fronts = List.of();
  private int nextFront;
  private boolean selectedSome;
  private long sweepsAtNanos = System.nanoTime() + SWEEP_NANOS;
  private @Nullable Long acceptsAtNanos;
  private @Nullable Long endsAtNanos;
  private volatile boolean stopping;

  /** Written by the front only, read by workers and scrapes. */
  private final AtomicInteger open = new AtomicInteger();

  private final AtomicLong busyNanos = new AtomicLong();

  Front(String name, FrontServer server) throws IOException {
    this.name = name;
    this.server = server;
  }

  // --- from any thread ------------------------------------------------------------------------

  String name() {
    return name;
  }

  /** Time since its start in which it did not wait for events. */
  long busyNanos() {
    return busyNanos.get();
  }

  /** Connections open, in flight or idle. */
  int open() {
    return open.get();
  }

  boolean isStopping() {
    return stopping;
  }

  FrontServer server() {
    return server;
  }

  /** Runs a task on the front's thread, soon. */
  void execute(Runnable task) {
    tasks.add(task);
    selector.wakeup();
  }

  /** Takes no connections any more, and ends when the last request has, or after the grace. */
  void stop(Duration grace) {
    stopping = true;
    execute(
        () -> {
          if (listening != null) {
            close(listening.channel());
          }
          connections().forEach(Connection::stop);
          endsAtNanos = System.nanoTime() + grace.toNanos();
        });
  }

  // --- its thread -----------------------------------------------------------------------------

  /**
   * Listens here and deals the connections out in turn. Called before the fronts run.
   *
   * @param all this one among them
   */
  void listen(ServerSocketChannel listener, List<Front> all) throws IOException {
    fronts = all;
    listening = listener.register(selector, SelectionKey.OP_ACCEPT);
  }

  @Override
  public void run() {
    try {
      while (!isOver()) {
        turn();
      }
      end();
    } catch (Throwable e) {
      // The only way out for what nobody expected: a server without its front must not look alive.
      LOG.log(Level.ERROR, name + " is broken, the server ends", e);
      server.broken();
    }
  }

  private boolean isOver() {
    Long end = endsAtNanos;
    return end != null && (open.getPlain() == 0 || System.nanoTime() - end >= 0);
  }

  private void turn() throws IOException {
    long before = System.nanoTime();
    long wait = tasks.isEmpty() ? millisToNext(before) : 0;
    busyNanos.setOpaque(busyNanos.getPlain() + before - clock.selectedNanos());
    clock.asked(before);
    selectedSome = false;
    int keys =
        wait == 0 ? selector.selectNow(this::dispatch) : selector.select(this::dispatch, wait);
    if (!selectedSome) {
      clock.selected(System.nanoTime());
    }
    clock.took(keys);
    if (wait == 0) {
      // It did not wait: asking was work.
      busyNanos.setOpaque(busyNanos.getPlain() + clock.selectedNanos() - before);
    }
    for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
      task.run();
    }
    callDue(System.nanoTime());
  }

  private long millisToNext(long nowNanos) {
    long next = sweepsAtNanos - nowNanos;
    if (acceptsAtNanos != null) {
      next = Math.min(next, acceptsAtNanos - nowNanos);
    }
    if (endsAtNanos != null) {
      next = Math.min(next, endsAtNanos - nowNanos);
    }
    return next <= 0 ? 0 : TimeUnit.NANOSECONDS.toMillis(next + 999_999);
  }

  private void callDue(long nowNanos) {
    if (acceptsAtNanos != null && acceptsAtNanos - nowNanos <= 0) {
      acceptsAtNanos = null;
      if (listening != null && listening.isValid()) {
        listening.interestOps(SelectionKey.OP_ACCEPT);
      }
    }
    if (sweepsAtNanos - nowNanos <= 0) {
      sweepsAtNanos = nowNanos + SWEEP_NANOS;
      long timeoutNanos = server.keepAliveTimeout().toNanos();
      connections().forEach(connection -> connection.closeIfQuiet(nowNanos, timeoutNanos));
    }
  }

  private void dispatch(SelectionKey key) {
    if (!selectedSome) {
      selectedSome = true;
      clock.selected(System.nanoTime());
    }
    if (!key.isValid()) {
      return;
    }
    if (key.equals(listening)) {
      accept(key);
      return;
    }
    Connection connection = (Connection) key.attachment();
    try {
      connection.ready();
    } catch (IOException e) {
      connection.lost(e);
    } catch (RuntimeException e) {
      LOG.log(Level.ERROR, "a bug: one connection is given up", e);
      connection.close();
    }
  }

  private void accept(SelectionKey key) {
    try {
      for (int i = 0; i < MOST_ACCEPTS; i++) {
        SocketChannel channel = ((ServerSocketChannel) key.channel()).accept();
        if (channel == null) {
          return;
        }
        Front next = fronts.get(nextFront++ % fronts.size());
        if (next == this) {
          adopt(channel);
        } else {
          next.execute(() -> next.adopt(channel));
        }
      }
    } catch (IOException e) {
      if (key.isValid()) {
        LOG.log(Level.WARNING, "cannot accept for now: {0}", e.getMessage());
        key.interestOps(0);
        acceptsAtNanos = System.nanoTime() + PAUSE_NANOS;
      }
    }
  }

  private void adopt(SocketChannel channel) {
    boolean adopted = false;
    try {
      if (!stopping) {
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, server.tcpNodelay());
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
    connections().toList().forEach(Connection::close);
    // Frees the descriptors of what was registered.
    selector.close();
  }

  private static void close(java.nio.channels.Channel channel) {
    try {
      channel.close();
    } catch (IOException e) {
      LOG.log(Level.WARNING, "a channel could not be closed", e);
    }
  }

  // --- what it offers to its connections, on its thread ----------------------------------------

  void closed() {
    open.setOpaque(open.getPlain() - 1);
  }

  /** Reads once into {@link #input}, from its start; returns how many bytes, or -1 at the end. */
  int fill(SocketChannel channel) throws IOException {
    int count = channel.read(readBuffer.clear());
    if (count > 0) {
      readBuffer.get(0, input, 0, count);
    }
    return count;
  }

  byte[] input() {
    return input;
  }

  RequestHead requestHead() {
    return requestHead;
  }

  /** When the selector returned last. */
  long selectedNanos() {
    return clock.selectedNanos();
  }

  /** Since when the input of the last selection has been there, about. */
  long readyNanos() {
    return clock.readyNanos();
  }
}
