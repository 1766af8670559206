package lab.executors;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import lab.contract.BadValueException;

/**
 * Gives the driver, which has no Docker socket, a fresh JVM per measurement.
 *
 * <ul>
 *   <li>{@code GET /health}: 200
 *   <li>{@code POST /measure/START/PURPOSE/EXECUTOR/TASKS/SLEEP_MS/POOL_SIZE/ROUNDS}: starts a JVM,
 *       waits for its end and answers 200 with its line of JSON; 400 for a bad word; 409 while
 *       another one runs; 500 when the JVM failed. Every refusal is one line of text. A JVM with
 *       START {@code aot} needs one with {@code train} and the same executor before it.
 * </ul>
 */
final class Launcher implements AutoCloseable {
  private static final int PORT = 8080;
  private static final String MEASURE = "/measure/";

  private final HttpServer server;
  private final ExecutorService handlers = Executors.newCachedThreadPool();
  private final Semaphore free = new Semaphore(1);
  private final ChildJvm child;

  /** Starts answering; port 0 takes a free one. */
  Launcher(int port, ChildJvm child) throws IOException {
    this.child = child;
    server = HttpServer.create(new InetSocketAddress(port), 0);
    server.setExecutor(handlers);
    server.createContext("/", this::handle);
    server.start();
  }

  @SuppressWarnings("SystemOut") // The container's log is what the operator reads.
  public static void main(String[] args) throws IOException {
    String flags = System.getenv().getOrDefault("LAB_JVM_FLAGS", "").strip();
    List<String> words = flags.isEmpty() ? List.of() : Arrays.asList(flags.split("\\s+", -1));
    Launcher launcher = new Launcher(PORT, ChildJvm.likeThisOne(words));
    Runtime.getRuntime().addShutdownHook(new Thread(launcher::close, "stop"));
    System.out.println("executors: on " + launcher.port() + ", JVM flags " + words);
  }

  int port() {
    return server.getAddress().getPort();
  }

  /** Ends a running measurement and stops answering. */
  @Override
  public void close() {
    handlers.shutdownNow();
    server.stop(0);
  }

  private void handle(HttpExchange exchange) throws IOException {
    String path = exchange.getRequestURI().getPath();
    try (exchange) {
      if (path.equals("/health")) {
        answer(exchange, 200, "up");
      } else if (!path.startsWith(MEASURE)) {
        answer(exchange, 404, "no such path");
      } else if (!exchange.getRequestMethod().equals("POST")) {
        answer(exchange, 405, "only POST");
      } else {
        measure(exchange, Arrays.asList(path.substring(MEASURE.length()).split("/", -1)));
      }
    }
  }

  private void measure(HttpExchange exchange, List<String> words) throws IOException {
    Plan plan;
    try {
      plan = Plan.parse(words);
    } catch (BadValueException e) {
      answer(exchange, 400, String.valueOf(e.getMessage()));
      return;
    }
    // Two at a time would measure each other.
    if (!free.tryAcquire()) {
      answer(exchange, 409, "another measurement runs");
      return;
    }
    String line;
    try {
      line = child.measure(plan);
    } catch (IOException e) {
      answer(exchange, 500, String.valueOf(e.getMessage()));
      return;
    } catch (InterruptedException e) {
      // Told to stop; nobody waits for an answer.
      return;
    } finally {
      free.release();
    }
    answer(exchange, 200, line);
  }

  private static void answer(HttpExchange exchange, int status, String text) throws IOException {
    byte[] body = (text + "\n").getBytes(StandardCharsets.UTF_8);
    exchange.sendResponseHeaders(status, body.length);
    try (OutputStream out = exchange.getResponseBody()) {
      out.write(body);
    }
  }
}
