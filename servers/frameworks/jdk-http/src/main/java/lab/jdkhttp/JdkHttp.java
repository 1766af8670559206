package lab.jdkhttp;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.net.URI;
import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.function.Function;
import lab.observe.RequestMetrics;
import lab.shell.ModelContext;
import lab.shell.ServerModel;
import lab.shell.TrafficServer;
import lab.spec.Answer;
import lab.spec.Outcome;
import lab.spec.RouteCall;
import lab.spec.Settings;
import lab.work.blocking.BlockingRoutes;
import lab.work.blocking.Demonstrations;
import lab.work.blocking.WorkerPool;
import lab.work.handover.HandOver;

/** The JDK's HTTP server with a handler that blocks its thread until the answer is written. */
public final class JdkHttp implements TrafficServer {
  private static final Logger LOG = System.getLogger(JdkHttp.class.getName());
  private static final String READER = "reader";
  private static final Duration STOP_POLL = Duration.ofMillis(5);

  private final ModelContext context;
  private final BlockingRoutes routes;
  private final ExecutorService executor;
  private final HandOver handOver;
  private final HandOver readers =
      new HandOver(
          Executors.newThreadPerTaskExecutor(Thread.ofVirtual().name(READER).factory()), () -> 0);
  private final HttpServer server;

  private JdkHttp(ModelContext context, ExecutorService executor) throws IOException {
    this.context = context;
    Settings settings = context.settings();
    // First: where the port is taken, no thread has started yet.
    server = HttpServer.create(new InetSocketAddress(settings.httpPort()), settings.backlog());
    this.routes = new BlockingRoutes(context);
    this.executor = executor;
    if (executor instanceof ThreadPoolExecutor threads) {
      WorkerPool pool = WorkerPool.publish(threads, context);
      handOver = new HandOver(executor, pool::limit);
      server.setExecutor(exchange -> dispatch(exchange, pool.getSize()));
    } else {
      handOver = new HandOver(executor, () -> 0);
      server.setExecutor(handOver);
    }
    server.createContext("/", this::handle);
  }

  /** A model that differs from its siblings in its executor alone; the server closes it. */
  public static ServerModel model(String name, Function<Settings, ExecutorService> executor) {
    return new ServerModel(
        name,
        Demonstrations.routes(),
        context -> {
          JdkHttpServerFlags.require(context.settings());
          JdkHttp http = new JdkHttp(context, executor.apply(context.settings()));
          http.server.start();
          return http;
        });
  }

  @Override
  public int port() {
    return server.getAddress().getPort();
  }

  /**
   * The JDK's own stop sits out its whole delay if the last that it waits for was a client's close
   * (JDK 25): so it waits on a thread of its own, until a second stop when the hand-over is empty.
   */
  @Override
  public void stop(Duration grace) {
    Thread waiting =
        Thread.ofPlatform().name("stop-wait").start(() -> server.stop((int) grace.toSeconds()));
    try {
      while (waiting.isAlive() && handOver.accepted() + readers.accepted() > 0) {
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

  /**
   * The JDK's server hands over a client's end like a request. While all threads are taken, a
   * virtual one reads first what it is, so that an end takes no place in the queue.
   */
  private void dispatch(Runnable exchange, int threads) {
    (handOver.accepted() < threads ? handOver : readers).execute(exchange);
  }

  private void handle(HttpExchange exchange) {
    HandOver.Ticket ticket = HandOver.ticket();
    if (Thread.currentThread().getName().equals(READER)) {
      handOver.execute(() -> handle(exchange), ticket.handedOverNanos());
      return;
    }
    try (exchange) {
      work(exchange, ticket);
    } catch (RuntimeException | Error e) {
      // The JDK would close the connection and tell nobody.
      LOG.log(Level.ERROR, "a bug: a request failed", e);
    }
  }

  private void work(HttpExchange exchange, HandOver.Ticket ticket) {
    URI target = exchange.getRequestURI();
    RouteCall call =
        context.resolve(exchange.getRequestMethod(), target.getPath(), target.getRawQuery());
    RequestMetrics requests = context.requests();
    requests.begun(call.route());
    Outcome outcome = Outcome.ABORTED;
    try {
      Answer answer = ticket.rejected() ? Answer.QUEUE_FULL : routes.answer(call);
      ticket.leave();
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

  private void send(HttpExchange exchange, Answer answer) throws IOException {
    // Finds the end of the request's body, normally at once. Left to the JDK's drain, the same
    // costs a 2 kB buffer per request: 9 % of all allocation at 5,000 connections.
    var unused = exchange.getRequestBody().read();
    var headers = exchange.getResponseHeaders();
    headers.set("Content-Type", answer.contentType());
    headers.set(ModelContext.MODEL_HEADER, context.model());
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
