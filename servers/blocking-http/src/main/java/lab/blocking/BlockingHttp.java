package lab.blocking;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.net.URI;
import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.function.Function;
import java.util.function.IntSupplier;
import lab.contract.Answer;
import lab.contract.ModelContext;
import lab.contract.Outcome;
import lab.contract.RequestMetrics;
import lab.contract.RouteCall;
import lab.contract.ServerModel;
import lab.contract.Settings;
import lab.contract.TrafficServer;
import lab.contract.blocking.BlockingRoutes;
import lab.contract.blocking.HandOver;
import lab.contract.blocking.WorkerPool;

/** The JDK's HTTP server with a handler that blocks its thread until the answer is written. */
public final class BlockingHttp implements TrafficServer {
  private static final Logger LOG = System.getLogger(BlockingHttp.class.getName());
  private static final Duration STOP_POLL = Duration.ofMillis(5);

  private final String model;
  private final RequestMetrics requests;
  private final BlockingRoutes routes;
  private final ExecutorService executor;
  private final HandOver handOver;
  private final HttpServer server;

  private BlockingHttp(ModelContext context, ExecutorService executor) throws IOException {
    this.model = context.model();
    this.requests = context.requests();
    this.routes = new BlockingRoutes(context);
    this.executor = executor;
    Settings settings = context.settings();
    IntSupplier limit = () -> Integer.MAX_VALUE;
    if (executor instanceof ThreadPoolExecutor threads) {
      limit = WorkerPool.publish(threads, context)::limit;
    }
    server = HttpServer.create(new InetSocketAddress(settings.httpPort()), settings.backlog());
    handOver = new HandOver(executor, limit);
    server.setExecutor(handOver);
    server.createContext("/", this::handle);
  }

  /**
   * A model that differs from its siblings in its executor alone.
   *
   * @param executor makes the threads that requests are handled on; the server closes it
   */
  public static ServerModel model(String name, Function<Settings, ExecutorService> executor) {
    return new ServerModel() {
      @Override
      public String name() {
        return name;
      }

      @Override
      public TrafficServer start(ModelContext context) throws IOException {
        BlockingHttp http = new BlockingHttp(context, executor.apply(context.settings()));
        http.server.start();
        return http;
      }
    };
  }

  @Override
  public int port() {
    return server.getAddress().getPort();
  }

  /**
   * The JDK's own stop closes the listener at once but overlooks when the last request it waits for
   * was no request, only a client's close: then it sits out its whole delay (seen on JDK 25). So it
   * waits on a thread of its own, and is ended by a second stop when the hand-over is empty.
   */
  @Override
  public void stop(Duration grace) {
    Thread waiting =
        Thread.ofPlatform().name("stop-wait").start(() -> server.stop((int) grace.toSeconds()));
    try {
      while (waiting.isAlive() && handOver.accepted() > 0) {
        Thread.sleep(STOP_POLL);
      }
      server.stop(0);
      waiting.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    var dropped = executor.shutdownNow();
    routes.close();
    if (!dropped.isEmpty()) {
      LOG.log(Level.WARNING, "stopped with {0} requests still queued", dropped.size());
    }
  }

  private void handle(HttpExchange exchange) {
    HandOver.Ticket ticket = HandOver.ticket();
    URI target = exchange.getRequestURI();
    RouteCall call =
        RouteCall.resolve(exchange.getRequestMethod(), target.getPath(), target.getRawQuery());
    requests.begun(call.route());
    Outcome outcome = Outcome.ABORTED;
    try (exchange) {
      Answer answer = ticket.rejected() ? Answer.QUEUE_FULL : answer(call);
      send(exchange, answer);
      outcome = answer.outcome();
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "the client was gone before its answer", e);
    } catch (InterruptedException e) {
      // Stopping: the grace is over, the connection has been closed under us.
      Thread.currentThread().interrupt();
    } finally {
      requests.ended(
          call.route(),
          outcome,
          ticket.begunNanos() - ticket.handedOverNanos(),
          System.nanoTime() - ticket.begunNanos());
    }
  }

  private Answer answer(RouteCall call) throws InterruptedException {
    try {
      return routes.answer(call);
    } catch (RuntimeException | Error e) {
      LOG.log(Level.ERROR, "a bug: " + call.route().path() + " failed", e);
      return Answer.INTERNAL_ERROR;
    }
  }

  private void send(HttpExchange exchange, Answer answer) throws IOException {
    // Finds the end of the request's body, normally at once. Left to the JDK's drain, the same
    // costs a 2 kB buffer per request: 9 % of all allocation at 5,000 connections.
    var unused = exchange.getRequestBody().read();
    var headers = exchange.getResponseHeaders();
    headers.set("Content-Type", answer.contentType());
    headers.set(ModelContext.MODEL_HEADER, model);
    if (answer.status() == 405) {
      headers.set("Allow", "GET");
    }
    if (exchange.getRequestMethod().equals("HEAD")) {
      // The length that the body would have, which the JDK leaves to its user.
      headers.set("Content-Length", Integer.toString(answer.body().length));
      exchange.sendResponseHeaders(answer.status(), -1);
    } else {
      exchange.sendResponseHeaders(answer.status(), answer.body().length);
      exchange.getResponseBody().write(answer.body());
      // Else the JDK sends a short answer when it closes the exchange, and tells nobody that the
      // client was gone.
      exchange.getResponseBody().flush();
    }
  }
}
