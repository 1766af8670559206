package lab.perconnection;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import lab.observe.RequestMetrics;
import lab.shell.ModelContext;
import lab.shell.TrafficServer;
import lab.spec.Settings;
import lab.work.Admission;
import lab.work.Answers;
import lab.work.blocking.BlockingRoutes;
import lab.work.blocking.Sweeper;
import org.jspecify.annotations.Nullable;

/** Accepts connections and gives each a thread; and what those threads share. */
final class ConnectionServer implements TrafficServer {
  private static final Logger LOG = System.getLogger(ConnectionServer.class.getName());

  // For its connections: any thread.
  final ModelContext context;
  final RequestMetrics requests;
  final BlockingRoutes routes;
  final Answers answers;
  final Admission admission;

  private final Settings settings;
  private final ServerSocket listener;
  private final Set<Connection> connections = ConcurrentHashMap.newKeySet();
  private final ExecutorService threads;
  private final Sweeper watchdog;
  private volatile boolean stopping;

  ConnectionServer(ModelContext context, ServerSocket listener) {
    this(
        context,
        listener,
        context.settings().platformThreads()
            ? Thread.ofPlatform().name("connection-", 1).factory()
            : Thread.ofVirtual().name("vt-connection-", 1).factory());
  }

  ConnectionServer(ModelContext context, ServerSocket listener, ThreadFactory factory) {
    this.context = context;
    this.settings = context.settings();
    this.requests = context.requests();
    this.routes = new BlockingRoutes(context);
    this.answers = new Answers(context.model());
    this.listener = listener;
    this.threads = Executors.newThreadPerTaskExecutor(factory);
    this.admission = new Admission(settings.queueBound());
    context.knobs().add(Settings.QUEUE_BOUND, admission::bound, admission::setBound);
    context.knobs().has(Settings.CONNECTION_THREADS);
    RequestMetrics.registerConnections(context.registry(), connections::size);
    // Threads of the kernel: neither has to wait for a carrier behind thousands of connections.
    this.watchdog = new Sweeper("watchdog", Duration.ofSeconds(1), this::sweep);
    var unused = Thread.ofPlatform().daemon().name("acceptor").start(this::accept);
  }

  static ConnectionServer start(ModelContext context) throws IOException {
    Settings settings = context.settings();
    return new ConnectionServer(context, new ServerSocket(settings.httpPort(), settings.backlog()));
  }

  @Override
  public int port() {
    return listener.getLocalPort();
  }

  @Override
  public void stop(Duration grace) {
    stopping = true;
    try {
      listener.close();
    } catch (IOException e) {
      LOG.log(Level.WARNING, "the listener could not be closed", e);
    }
    connections.forEach(Connection::closeIfReceiving);
    threads.shutdown();
    try {
      if (!threads.awaitTermination(grace.toNanos(), TimeUnit.NANOSECONDS)) {
        LOG.log(Level.WARNING, "stopped with {0} connections unfinished", connections.size());
        // Before what they wait for is broken off: it is no timeout of the downstream's.
        connections.forEach(Connection::close);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    var unused = threads.shutdownNow();
    watchdog.close();
    routes.close();
  }

  // --- what connections share; any thread ------------------------------------------------------

  boolean isStopping() {
    return stopping;
  }

  void closed(Connection connection) {
    connections.remove(connection);
  }

  // --- its own two threads ---------------------------------------------------------------------

  private void accept() {
    while (!stopping) {
      try {
        begin(listener.accept());
      } catch (IOException | RuntimeException | Error e) {
        // Nobody else accepts: whatever it was, this thread goes on.
        if (!stopping) {
          LOG.log(Level.WARNING, "cannot accept for now: {0}", e.toString());
          // Most likely for want of file descriptors.
          LockSupport.parkNanos(100_000_000);
        }
      }
    }
  }

  private void begin(Socket socket) {
    Connection connection = null;
    boolean begun = false;
    try {
      socket.setTcpNoDelay(true);
      connection = new Connection(this, socket);
      connections.add(connection);
      threads.execute(connection);
      begun = true;
    } catch (IOException | RejectedExecutionException e) {
      LOG.log(Level.DEBUG, "a client was gone at once, or came too late", e);
    } finally {
      if (!begun) {
        giveUp(socket, connection);
      }
    }
  }

  private void giveUp(Socket socket, @Nullable Connection connection) {
    if (connection != null) {
      closed(connection);
    }
    try {
      socket.close();
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "a connection could not be closed", e);
    }
  }

  /** A timer for each read would be set and cancelled for every request: this looks at all. */
  private void sweep() {
    long since = System.nanoTime() - settings.keepAliveTimeout().toNanos();
    connections.forEach(connection -> connection.closeIfKeptWaitingSince(since));
  }
}
