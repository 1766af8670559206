package lab.vertx;

import static java.util.Objects.requireNonNull;

import io.vertx.core.Future;
import io.vertx.core.VerticleBase;
import io.vertx.core.http.HttpConnection;
import io.vertx.core.http.HttpServer;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.net.SocketAddress;
import io.vertx.ext.web.Router;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import lab.shell.ModelContext;
import lab.spec.Settings;
import lab.work.nonblocking.DownstreamCalls;
import org.jspecify.annotations.Nullable;

/** The server of one event loop. All listen on one port; Vert.x deals the connections out. */
final class HttpVerticle extends VerticleBase {
  private static final Logger LOG = System.getLogger(HttpVerticle.class.getName());
  private static final String ALL_ADDRESSES = "0.0.0.0";

  private final ModelContext lab;
  private final LoopClients clients;
  private final DownstreamCalls downstream;
  private final AtomicInteger openConnections;
  private volatile @Nullable HttpServer server;

  HttpVerticle(
      ModelContext lab,
      LoopClients clients,
      DownstreamCalls downstream,
      AtomicInteger openConnections) {
    this.lab = lab;
    this.clients = clients;
    this.downstream = downstream;
    this.openConnections = openConnections;
  }

  @Override
  public Future<?> start() {
    clients.add(new HttpClientDownstream(vertx, lab));
    Router router = Router.router(vertx);
    new LabRoutes(lab, vertx, downstream).addTo(router);
    HttpServer created =
        vertx
            .createHttpServer(told(options(lab.settings())))
            .connectionHandler(this::connected)
            .requestHandler(router);
    server = created;
    return created.listen(address(lab.settings().httpPort()));
  }

  /** Any thread, when it has started. */
  int port() {
    return requireNonNull(server).actualPort();
  }

  /** Takes no new connections, and ends when the requests have, or the grace is over. */
  Future<Void> drain(Duration grace) {
    return requireNonNull(server).shutdown(grace.toMillis(), TimeUnit.MILLISECONDS);
  }

  private void connected(HttpConnection connection) {
    openConnections.incrementAndGet();
    var _ =
        connection
            .closeHandler(_ -> openConnections.decrementAndGet())
            // Without this Vert.x logs as severe what clients do every day.
            .exceptionHandler(e -> LOG.log(Level.DEBUG, "the client broke the connection", e));
  }

  private static SocketAddress address(int port) {
    // A free port, but the same one for all verticles.
    return port == 0
        ? SocketAddress.sharedRandomPort(1, ALL_ADDRESSES)
        : SocketAddress.inetSocketAddress(port, ALL_ADDRESSES);
  }

  private HttpServerOptions told(HttpServerOptions options) {
    lab.knobs().ofFramework("longest_request_line", options.getMaxInitialLineLength());
    lab.knobs().ofFramework("longest_head", options.getMaxHeaderSize());
    lab.knobs().ofFramework("http2", options.isHttp2ClearTextEnabled());
    return options;
  }

  private static HttpServerOptions options(Settings settings) {
    HttpServerOptions shared =
        new HttpServerOptions()
            .setAcceptBacklog(settings.backlog())
            .setIdleTimeout((int) settings.keepAliveTimeout().toSeconds())
            .setIdleTimeoutUnit(TimeUnit.SECONDS);
    return settings.shipped()
        ? shared
        : shared
            .setMaxInitialLineLength(32 << 10)
            .setMaxHeaderSize(32 << 10)
            .setHttp2ClearTextEnabled(false);
  }
}
