package lab.eventloop;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.Channel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.List;
import java.util.OptionalInt;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.stream.Stream;
import lab.contract.LoopMetrics;
import lab.contract.ModelContext;
import lab.contract.RequestMetrics;
import lab.contract.RouteCall;
import lab.contract.Routes;
import lab.contract.SelectorClock;
import lab.contract.Settings;
import lab.contract.downstream.DownstreamAddress;
import lab.contract.downstream.DownstreamLimits;
import lab.contract.nonblocking.LoopServices;
import lab.contract.nonblocking.NonBlockingRoutes;
import lab.contract.serving.Admission;
import lab.contract.serving.Answers;
import lab.wire.HeaderFields;
import lab.wire.Request;
import lab.wire.RequestHead;
import org.jspecify.annotations.Nullable;

/**
 * One thread that does everything for its connections: their input and output, their timers, their
 * downstream calls, and the requests' work itself.
 *
 * <pre>
 *   +--&gt; select ----ready keys----&gt; read, parse, write; whole requests go to the queue
 *   |      |                                        |
 *   |      '--nothing before the next timer--.      |
 *   |                                        v      v
 *   |                             timers due, tasks handed in by other threads
 *   |                                        |
 *   '------ slice over, or queue empty --- begin requests from the queue
 * </pre>
 *
 * <p>Requests wait in a queue of the loop's own, and not unread in their sockets, so that their
 * wait can be measured and bounded: after at most {@link #SLICE_NANOS} of work, or as long as the
 * round took before it, or one request that takes longer, the loop looks again who has come.
 */
final class Loop implements Runnable, LoopServices, LoopMetrics.Observed {
  private static final Logger LOG = System.getLogger(Loop.class.getName());

  /** How long the loop at least works off its queue before it looks for new input. */
  private static final long SLICE_NANOS = 1_000_000;

  private static final long SWEEP_NANOS = 1_000_000_000;
  private static final int BUFFER_BYTES = 64 << 10;

  private final String name;
  private final Settings settings;
  private final RequestMetrics requests;
  private final Admission admission;
  private final int mostIdle;
  private final Executor helpers;
  private final Runnable broken;
  private final Routes known;
  private final NonBlockingRoutes routes;
  private final DownstreamPool downstream;

  private final Selector selector = Selector.open();
  private final Consumer<SelectionKey> dispatch = this::dispatch;
  private final Timers timers = new Timers();
  private final ArrayDeque<Connection> queue = new ArrayDeque<>();
  private final Queue<Runnable> handedIn = new ConcurrentLinkedQueue<>();

  /** One of each for all connections: a connection has none of its own while it is idle. */
  private final ByteBuffer readBuffer = ByteBuffer.allocateDirect(BUFFER_BYTES);

  private final byte[] input = new byte[BUFFER_BYTES];
  private final ByteBuffer output = ByteBuffer.allocateDirect(BUFFER_BYTES);
  private final RequestHead requestHead = new RequestHead();
  private final HeaderFields answerFields = new HeaderFields();
  private final Answers answers;

  private @Nullable Acceptor acceptor;
  private boolean selectedSome;
  private final SelectorClock clock = new SelectorClock(System.nanoTime());
  private int idle;
  private boolean stopping;
  private boolean graceOver;

  /** Set by the thread itself. Another thread reads null or this one, and is equal to neither. */
  private @Nullable Thread thread;

  /** Written by the loop only, read by scrapes. */
  private final AtomicInteger open = new AtomicInteger();

  private final AtomicInteger depth = new AtomicInteger();
  private final AtomicLong busyNanos = new AtomicLong();

  /**
   * @param mostIdle idle connections this loop may keep
   * @param admission shared by all loops
   * @param helpers runs what may block
   * @param broken called once if the loop fails and cannot go on
   */
  Loop(
      String name,
      ModelContext context,
      int mostIdle,
      Admission admission,
      DownstreamLimits limits,
      DownstreamAddress address,
      byte[] downstreamRequest,
      Executor helpers,
      Runnable broken)
      throws IOException {
    this.name = name;
    this.settings = context.settings();
    this.requests = context.requests();
    this.mostIdle = mostIdle;
    this.admission = admission;
    this.helpers = helpers;
    this.broken = broken;
    this.known = context.routes();
    this.answers = new Answers(context.model());
    this.routes = new NonBlockingRoutes(context, this);
    this.downstream =
        new DownstreamPool(this, limits, address, downstreamRequest, context.downstream());
  }

  // --- from any thread ------------------------------------------------------------------------

  @Override
  public String name() {
    return name;
  }

  @Override
  public long busyNanos() {
    return busyNanos.get();
  }

  @Override
  public OptionalInt queueDepth() {
    return OptionalInt.of(depth.get());
  }

  /** Client connections open, in flight or idle. Any thread. */
  int openConnections() {
    return open.get();
  }

  /** Runs a task on the loop's thread, soon. */
  void execute(Runnable task) {
    handedIn.add(task);
    selector.wakeup();
  }

  /** Whether the caller runs on the loop's thread. Any thread. */
  boolean isCurrentThread() {
    return Thread.currentThread().equals(thread);
  }

  /** Takes no connections any more, and ends when the last request has, or after the grace. */
  void stop(Duration grace) {
    execute(() -> beginToStop(grace));
  }

  // --- the loop -------------------------------------------------------------------------------

  @Override
  public void run() {
    thread = Thread.currentThread();
    try {
      sweepFromNowOn();
      while (!(stopping && open.getPlain() == 0) && !graceOver) {
        turn();
      }
      end();
    } catch (Throwable e) {
      // The only way out for what nobody expected: a server without its loop must not look alive.
      LOG.log(Level.ERROR, name + " is broken, the server ends", e);
      broken.run();
    }
  }

  /** Selects once, and does what is to be done then. */
  void turn() throws IOException {
    long before = System.nanoTime();
    long wait = queue.isEmpty() && handedIn.isEmpty() ? timers.millisToNext(before) : 0;
    busyNanos.setOpaque(busyNanos.getPlain() + before - clock.selectedNanos());
    clock.asked(before);
    selectedSome = false;
    int keys =
        wait == 0 ? selector.selectNow(dispatch) : selector.select(dispatch, Math.max(0, wait));
    if (!selectedSome) {
      clock.selected(System.nanoTime());
    }
    clock.took(keys);
    if (wait == 0) {
      // It did not wait: asking was work.
      busyNanos.setOpaque(busyNanos.getPlain() + clock.selectedNanos() - before);
    }
    timers.callDue(System.nanoTime());
    for (Runnable task = handedIn.poll(); task != null; task = handedIn.poll()) {
      task.run();
    }
    workOffQueue();
  }

  private void dispatch(SelectionKey key) {
    if (!selectedSome) {
      selectedSome = true;
      clock.selected(System.nanoTime());
    }
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
      giveUp(key.channel());
    }
  }

  private void workOffQueue() {
    // As long as the round took up to here: or else requests wait while many clients are read, and
    // their calls of the downstream begin late.
    long now = System.nanoTime();
    long end = now + Math.max(SLICE_NANOS, now - clock.selectedNanos());
    while (now - end < 0 && !queue.isEmpty()) {
      Connection next = queue.remove();
      depth.setOpaque(queue.size());
      next.begin(now);
      now = System.nanoTime();
    }
  }

  private void sweepFromNowOn() {
    timers.set(
        new Timers.Timer() {
          @Override
          void due() {
            long now = System.nanoTime();
            clients().forEach(client -> client.closeIfQuiet(now, settings.keepAliveTimeout()));
            downstream.closeIdle(now);
            timers.set(this, now + SWEEP_NANOS);
          }
        },
        System.nanoTime() + SWEEP_NANOS);
  }

  /** Those that are registered; some may be closed already. */
  private Stream<Connection> clients() {
    return selector.keys().stream()
        .map(SelectionKey::attachment)
        .filter(Connection.class::isInstance)
        .map(Connection.class::cast);
  }

  // --- its end --------------------------------------------------------------------------------

  private void beginToStop(Duration grace) {
    stopping = true;
    if (acceptor != null) {
      acceptor.close();
    }
    clients().forEach(Connection::stop);
    timers.set(
        new Timers.Timer() {
          @Override
          void due() {
            graceOver = true;
          }
        },
        System.nanoTime() + grace.toNanos());
  }

  private void end() throws IOException {
    if (open.getPlain() > 0) {
      LOG.log(Level.WARNING, "{0} stopped with {1} connections unfinished", name, open.getPlain());
    }
    for (SelectionKey key : selector.keys()) {
      key.channel().close();
    }
    // Frees the descriptors of what was registered.
    selector.close();
  }

  // --- what it offers to its parts, on its thread
  // ---------------------------------------------------

  /** Listens here and deals the connections out. To be called before the loop runs. */
  void listen(ServerSocketChannel listener, List<Loop> loops) throws IOException {
    SelectionKey key = listener.register(selector, SelectionKey.OP_ACCEPT);
    acceptor = new Acceptor(listener, key, this, loops);
    key.attach(acceptor);
  }

  void adopt(SocketChannel channel) {
    boolean adopted = false;
    try {
      if (!stopping) {
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, settings.tcpNodelay());
        SelectionKey key = channel.register(selector, SelectionKey.OP_READ);
        key.attach(new Connection(this, channel, key));
        open.setOpaque(open.getPlain() + 1);
        adopted = true;
      }
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "the client was gone at once", e);
    } finally {
      if (!adopted) {
        giveUp(channel);
      }
    }
  }

  private static void giveUp(Channel channel) {
    try {
      channel.close();
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "a connection could not be closed", e);
    }
  }

  void closed() {
    open.setOpaque(open.getPlain() - 1);
  }

  void idleChanged(int by) {
    idle += by;
  }

  boolean hasEnoughIdle() {
    return idle >= mostIdle;
  }

  boolean isStopping() {
    return stopping;
  }

  Admission admission() {
    return admission;
  }

  /** Puts a connection's request into the queue. */
  void queue(Connection connection) {
    queue.add(connection);
    depth.setOpaque(queue.size());
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

  ByteBuffer output() {
    return output;
  }

  /** Of its selector. */
  SelectorClock clock() {
    return clock;
  }

  Selector selector() {
    return selector;
  }

  Timers timers() {
    return timers;
  }

  RequestHead requestHead() {
    return requestHead;
  }

  /** For reading the downstream's answers. */
  HeaderFields answerFields() {
    return answerFields;
  }

  RouteCall resolve(Request request) {
    return known.resolve(request.method(), request.path(), request.query());
  }

  Answers answers() {
    return answers;
  }

  RequestMetrics requests() {
    return requests;
  }

  NonBlockingRoutes routes() {
    return routes;
  }

  // --- LoopServices ---------------------------------------------------------------------------

  @Override
  public Pending after(long millis, Runnable then) {
    if (settings.blockTheLoop().blocks()) {
      settings.blockTheLoop().hold(millis);
      then.run();
      return () -> {};
    }
    Wait wait = new Wait(then);
    timers.set(wait, System.nanoTime() + millis * 1_000_000);
    return wait;
  }

  @Override
  public <T> void handOver(Callable<T> work, BiConsumer<@Nullable T, @Nullable Throwable> then) {
    helpers.execute(
        () -> {
          T result;
          try {
            result = work.call();
          } catch (Throwable e) {
            execute(() -> then.accept(null, e));
            return;
          }
          execute(() -> then.accept(result, null));
        });
  }

  @Override
  public void callDownstream(DownstreamCallback callback) {
    downstream.call(callback);
  }

  private final class Wait extends Timers.Timer implements Pending {
    private final Runnable then;

    Wait(Runnable then) {
      this.then = then;
    }

    @Override
    void due() {
      then.run();
    }

    @Override
    public void cancel() {
      timers.cancel(this);
    }
  }
}
