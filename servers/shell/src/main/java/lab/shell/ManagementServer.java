package lab.shell;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import lab.observe.ContainerLimits;
import lab.recorder.Exchanges;
import lab.recorder.ManagementToken;
import lab.recorder.Recorder;
import lab.spec.Answer;
import lab.spec.BadValueException;
import lab.spec.Bodies;
import lab.spec.Outcome;

/**
 * The management port: the same for every model, on daemon threads of its own, so that a saturated
 * model can still be observed. No call waits for another one. Every container reaches it, so only
 * what Prometheus and the health check ask is open to all.
 */
final class ManagementServer implements AutoCloseable {
  private static final Logger LOG = System.getLogger(ManagementServer.class.getName());

  /** Longer than TCP waits before it sends a lost attempt again (1 s). */
  private static final int CONNECT_MS = 2500;

  /** More calls at once are no driver's; their connections are closed. */
  private static final int MOST_THREADS = 16;

  private static final Set<String> OPEN = Set.of("GET /health", "GET /metrics");

  private final ModelContext context;
  private final Identity identity;
  private final ManagementToken token;
  private final ContainerLimits limits = ContainerLimits.ofThisContainer();
  private final Runnable restart;
  private final Recorder recorder = new Recorder();
  private final HttpServer server;
  private final ExecutorService threads =
      new ThreadPoolExecutor(
          0,
          MOST_THREADS,
          60,
          TimeUnit.SECONDS,
          new SynchronousQueue<>(),
          Thread.ofPlatform().daemon().name("management-", 1).factory());

  /** Restart is called after it was promised; it ends the process, and may take its time. */
  ManagementServer(ModelContext context, Identity identity, Runnable restart) throws IOException {
    this.context = context;
    this.identity = identity;
    this.restart = restart;
    token = ManagementToken.of(identity.model(), context.settings().tokenSums());
    int port = context.settings().managementPort();
    server = HttpServer.create(new InetSocketAddress(port), 128);
    server.createContext("/", this::handle);
    server.setExecutor(threads);
  }

  void start() {
    server.start();
  }

  int port() {
    return server.getAddress().getPort();
  }

  @Override
  public void close() {
    server.stop(0);
    threads.shutdown();
    recorder.close();
  }

  private void handle(HttpExchange exchange) throws IOException {
    String call = Exchanges.call(exchange);
    boolean isAllowed = OPEN.contains(call) || token.isGiven(exchange);
    Exchanges.answer(
        exchange, () -> isAllowed ? answer(call, exchange) : ManagementToken.NOT_GIVEN);
    if (isAllowed && call.equals("POST /restart")) {
      Thread.ofPlatform().daemon().name("restart").start(restart);
    }
  }

  private Answer answer(String call, HttpExchange exchange) throws IOException {
    Answer recorded = recorder.answer(exchange);
    if (recorded != null) {
      return recorded;
    }
    return switch (call) {
      case "GET /health" -> Bodies.up(identity.model());
      case "GET /identity" -> Answer.ok(identity.asMap());
      case "GET /settings" -> settings();
      case "PATCH /settings" -> change(exchange);
      case "GET /time" -> Answer.ok(Map.of("unix_ms", System.currentTimeMillis()));
      case "GET /round-trip" -> roundTrip();
      case "GET /metrics" -> Bodies.metrics(context.exposition().get());
      case "POST /gc" -> collectGarbage();
      case "POST /restart" ->
          new Answer(202, Outcome.OK, Answer.JSON, "{\"restarting\":true}".getBytes(UTF_8));
      default ->
          Answer.error(
              404,
              "no such call; there are GET /health /identity /settings /time /round-trip /metrics,"
                  + " PATCH /settings, POST /gc /restart "
                  + Recorder.CALLS);
    };
  }

  private Answer settings() {
    Map<String, Object> settings = new LinkedHashMap<>(context.knobs().inForce());
    settings.putAll(limits.asMap());
    Map<String, Object> body = new LinkedHashMap<>();
    body.put("model", identity.model());
    body.put("settings", settings);
    return Answer.ok(body);
  }

  /**
   * A round trip to what the model calls: how much longer a connection to it takes to set up than
   * one within this machine, timed in turns; 0 where the difference is too small.
   */
  private Answer roundTrip() {
    URI downstream = context.settings().downstreamUrl();
    int port = downstream.getPort() < 0 ? 80 : downstream.getPort();
    InetSocketAddress called = new InetSocketAddress(downstream.getHost(), port);
    InetSocketAddress local = new InetSocketAddress(InetAddress.getLoopbackAddress(), port());
    long there = Long.MAX_VALUE;
    long here = Long.MAX_VALUE;
    // The quickest of so many connections tells how long one takes.
    for (int i = 0; i < 5; i++) {
      there = Math.min(there, connecting(called));
      here = Math.min(here, connecting(local));
    }
    if (there == Long.MAX_VALUE || here == Long.MAX_VALUE) {
      return Answer.error(502, downstream + " accepts no connection");
    }
    return Answer.ok(Map.of("microseconds", Math.max(0, there - here) / 1000));
  }

  /** In ns; the greatest number where there is no connection. */
  private static long connecting(InetSocketAddress address) {
    try (Socket socket = new Socket()) {
      long begun = System.nanoTime();
      socket.connect(address, CONNECT_MS);
      return System.nanoTime() - begun;
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "no connection to {0}: {1}", address, e);
      return Long.MAX_VALUE;
    }
  }

  /** The heap as a full collection leaves it. Stops the JVM, so it is for between loads. */
  private static Answer collectGarbage() {
    long before = collections();
    System.gc();
    if (collections() == before) {
      return Answer.error(409, "nothing was collected: do the JVM's flags forbid System.gc()?");
    }
    long used =
        ManagementFactory.getMemoryPoolMXBeans().stream()
            .filter(pool -> pool.getType() == MemoryType.HEAP)
            .map(MemoryPoolMXBean::getCollectionUsage)
            .filter(Objects::nonNull)
            .mapToLong(MemoryUsage::getUsed)
            .sum();
    return Answer.ok(Map.of("heap_used_bytes", used));
  }

  private static long collections() {
    return ManagementFactory.getGarbageCollectorMXBeans().stream()
        .mapToLong(GarbageCollectorMXBean::getCollectionCount)
        .sum();
  }

  private Answer change(HttpExchange exchange) throws IOException {
    try {
      context.knobs().change(Exchanges.numbers(exchange));
      return settings();
    } catch (BadValueException e) {
      return Answer.badRequest(e);
    }
  }
}
