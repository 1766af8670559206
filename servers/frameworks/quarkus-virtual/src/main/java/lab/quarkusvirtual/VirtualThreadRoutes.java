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
import lab.work.blocking.BlockingRoutes;
import org.jboss.resteasy.reactive.RestResponse;

/** The routes: each request on a new virtual thread, which blocks as it likes. */
@Path("/")
@Startup
@RunOnVirtualThread
public final class VirtualThreadRoutes {
  private final BlockingRoutes routes;

  VirtualThreadRoutes(ModelContext context, DownstreamAnswers downstream) {
    context.knobs().worksBesideLoops();
    routes = new BlockingRoutes(context, new WaitingClient(downstream));
  }

  @GET
  public RestResponse<byte[]> root(RoutingContext request) throws InterruptedException {
    return answer(request);
  }

  @GET
  @Path("downstream")
  public RestResponse<byte[]> downstream(RoutingContext request) throws InterruptedException {
    return answer(request);
  }

  @GET
  @Path("synchronized")
  public RestResponse<byte[]> downstreamSynchronized(RoutingContext request)
      throws InterruptedException {
    return answer(request);
  }

  @GET
  @Path("health")
  public RestResponse<byte[]> health(RoutingContext request) throws InterruptedException {
    return answer(request);
  }

  @GET
  @Path("compute")
  public RestResponse<byte[]> compute(RoutingContext request) throws InterruptedException {
    return answer(request);
  }

  @GET
  @Path("block")
  public RestResponse<byte[]> block(RoutingContext request) throws InterruptedException {
    return answer(request);
  }

  @GET
  @Path("file")
  public RestResponse<byte[]> file(RoutingContext request) throws InterruptedException {
    return answer(request);
  }

  @GET
  @Path("metrics")
  public RestResponse<byte[]> metrics(RoutingContext request) throws InterruptedException {
    return answer(request);
  }

  @PreDestroy
  void close() {
    routes.close();
  }

  private RestResponse<byte[]> answer(RoutingContext request) throws InterruptedException {
    return Responses.of(routes.answer(Exchange.begin(request)));
  }
}
