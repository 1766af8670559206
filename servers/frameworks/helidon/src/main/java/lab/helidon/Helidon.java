package lab.helidon;

import io.helidon.webserver.WebServer;
import io.helidon.webserver.http.Handler;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import io.helidon.webserver.http1.Http1Config;
import java.io.IOException;
import java.time.Duration;
import lab.shell.LabServer;
import lab.shell.ModelContext;
import lab.shell.ServerModel;
import lab.shell.TrafficServer;
import lab.spec.RouteCall;
import lab.spec.Settings;
import lab.work.blocking.BlockingRoutes;

/** Model {@code helidon}: Helidon SE, a virtual thread for every connection, the lab's limits. */
public final class Helidon implements TrafficServer {
  public static final ServerModel MODEL = new ServerModel("helidon", Helidon::start);

  private final BlockingRoutes routes;
  private final WebServer server;

  private Helidon(BlockingRoutes routes, WebServer server) {
    this.routes = routes;
    this.server = server;
  }

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }

  private static Helidon start(ModelContext context) throws IOException {
    BlockingRoutes routes =
        BlockingRoutes.ofFramework(context, () -> new WebClientDownstream(context));
    try {
      WebServer server = configured(context, routes).start();
      if (!server.isRunning()) {
        // It does not throw.
        throw new IOException("Helidon did not start, see its log");
      }
      return new Helidon(routes, server);
    } catch (Throwable e) {
      routes.close();
      throw e;
    }
  }

  @Override
  public int port() {
    return server.port();
  }

  /** The grace is Helidon's to keep: it was told when it was configured. */
  @Override
  public void stop(Duration grace) {
    var _ = server.stop();
    routes.close();
  }

  private static WebServer configured(ModelContext context, BlockingRoutes routes) {
    Settings settings = context.settings();
    Duration idle = settings.keepAliveTimeout();
    Http1Config http1 = http1(settings.shipped());
    Handler handler = (request, response) -> answer(routes, request, response);
    context.knobs().ofFramework("longest_request_line", http1.maxPrologueLength());
    context.knobs().ofFramework("longest_head", http1.maxHeadersSize());
    return WebServer.builder()
        .port(settings.httpPort())
        .backlog(settings.backlog())
        .connectionOptions(options -> options.tcpNoDelay(true))
        .idleConnectionTimeout(idle)
        .idleConnectionPeriod(idle.dividedBy(4))
        .shutdownGracePeriod(LabServer.STOP_GRACE)
        // The lab has one of its own, which stops more than this.
        .shutdownHook(false)
        .protocolsDiscoverServices(false)
        .addProtocol(http1)
        .routing(
            routing -> {
              var _ = routing.addFilter(new ContractFilter(context));
              for (String path : context.routes().paths()) {
                var _ = routing.get(path, handler);
              }
            })
        .build();
  }

  /** Blocks the virtual thread of the connection. */
  private static void answer(BlockingRoutes routes, ServerRequest request, ServerResponse response)
      throws InterruptedException {
    RouteCall call = request.context().get(RouteCall.class).orElseThrow();
    Answers.send(routes.answer(call), request, response);
  }

  private static Http1Config http1(boolean shipped) {
    return shipped
        ? Http1Config.create()
        : Http1Config.builder().maxPrologueLength(32 << 10).maxHeadersSize(32 << 10).build();
  }
}
