package lab.contract;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Supplier;

/**
 * The management port: the same for every model, on two daemon threads of its own, so that a
 * saturated model can still be observed and a scrape is never a request of the model. (Two, so that
 * a client that is slow to read does not hold up the scrape.)
 */
final class ManagementServer implements AutoCloseable {
  private static final int MAX_BODY_BYTES = 10_000;

  private final Identity identity;
  private final Knobs knobs;
  private final ContainerLimits limits =
      new ContainerLimits(
          Path.of("/sys/fs/cgroup"), Path.of("/proc/sys/net/ipv4/ip_local_port_range"));
  private final Supplier<byte[]> exposition;
  private final Runnable restart;
  private final Recorder recorder = new Recorder();
  private final HttpServer server;
  private final ExecutorService threads =
      Executors.newFixedThreadPool(
          2, Thread.ofPlatform().daemon().name("management-", 1).factory());

  /**
   * @param restart called after a restart was promised; ends the process, may take its time
   */
  ManagementServer(
      int port, Identity identity, Knobs knobs, Supplier<byte[]> exposition, Runnable restart)
      throws IOException {
    this.identity = identity;
    this.knobs = knobs;
    this.exposition = exposition;
    this.restart = restart;
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
    String call = exchange.getRequestMethod() + " " + exchange.getRequestURI().getPath();
    try (exchange) {
      Answer answer =
          switch (call) {
            case "GET /health" -> Bodies.up(identity.model());
            case "GET /identity" -> Answer.ok(identity.asMap());
            case "GET /settings" -> settings();
            case "PATCH /settings" -> change(exchange);
            case "GET /metrics" -> Bodies.metrics(exposition.get());
            case "POST /gc" -> collectGarbage();
            case "POST /recording/cpu",
                "POST /recording/alloc",
                "POST /recording/lock",
                "POST /recording/end" ->
                recording(exchange, call.substring(call.lastIndexOf('/') + 1));
            case "POST /restart" ->
                new Answer(202, Outcome.OK, Answer.JSON, "{\"restarting\":true}".getBytes(UTF_8));
            default ->
                Answer.error(
                    404,
                    "no such call; there are GET /health /identity /settings /metrics,"
                        + " PATCH /settings, POST /gc /restart"
                        + " /recording/cpu /recording/alloc /recording/lock /recording/end");
          };
      exchange.getResponseHeaders().set("Content-Type", answer.contentType());
      exchange.sendResponseHeaders(answer.status(), answer.body().length);
      exchange.getResponseBody().write(answer.body());
    }
    if (call.equals("POST /restart")) {
      Thread.ofPlatform().daemon().name("restart").start(restart);
    }
  }

  private Answer settings() {
    Map<String, Object> settings = new LinkedHashMap<>(knobs.inForce());
    settings.putAll(limits.asMap());
    Map<String, Object> body = new LinkedHashMap<>();
    body.put("model", identity.model());
    body.put("settings", settings);
    return Answer.ok(body);
  }

  /**
   * What is live, and nothing else: the heap as the full collection left it, not what was allocated
   * since. Stops the JVM for the collection, so it is for the time between loads.
   */
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
      knobs.change(numbers(exchange));
      return settings();
    } catch (BadValueException e) {
      return Answer.badRequest(e);
    }
  }

  private Answer recording(HttpExchange exchange, String what) throws IOException {
    try {
      Map<String, Long> words = numbers(exchange);
      return what.equals("end") ? recorder.end(words) : recorder.start(what, words);
    } catch (BadValueException e) {
      return Answer.badRequest(e);
    }
  }

  private static Map<String, Long> numbers(HttpExchange exchange)
      throws IOException, BadValueException {
    byte[] body = exchange.getRequestBody().readNBytes(MAX_BODY_BYTES);
    return Json.readNumbers(new String(body, UTF_8));
  }
}
