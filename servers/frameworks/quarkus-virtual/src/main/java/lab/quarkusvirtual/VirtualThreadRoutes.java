package lab.quarkusvirtual;

import io.quarkus.runtime.Startup;
import io.smallrye.common.annotation.RunOnVirtualThread;
import io.vertx.ext.web.RoutingContext;
import jakarta.annotation.PreDestroy;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import lab.quarkus.DownstreamAnswers;
import lab.quarkus.Exchange;
import lab.quarkus.Responses;
import lab.shell.ModelContext;
import lab.spec.Settings;
import lab.work.blocking.BlockingRoutes;
import org.jboss.resteasy.reactive.RestResponse;

/** The routes: each request on a new virtual thread, which blocks as it likes. */
@Path("/")
@Startup
@RunOnVirtualThread
public final class VirtualThreadRoutes {
  private final BlockingRoutes routes;

  VirtualThreadRoutes(ModelContext context, DownstreamAnswers downstream) {
    context.knobs().hasNo(Settings.BLOCK_THE_LOOP);
    routes =
        BlockingRoutes.ofFramework(
            context,
            () -> {
              downstream.publish(context);
              return new WaitingClient(downstream);
            });
  }

  @GET
  public RestResponse<byte[]> root(RoutingContext request) throws InterruptedException {
    return Responses.of(routes.answer(Exchange.begin(request)));
  }

  @GET
  @Path("{route}")
  public RestResponse<byte[]> route(RoutingContext request) throws InterruptedException {
    return root(request);
  }

  @PreDestroy
  void close() {
    routes.close();
  }
}
