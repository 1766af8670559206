package lab.quarkusreactive;

import io.quarkus.runtime.Startup;
import io.smallrye.common.annotation.NonBlocking;
import io.smallrye.mutiny.Uni;
import io.vertx.ext.web.RoutingContext;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import lab.quarkus.Exchange;
import lab.quarkus.Responses;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.Bodies;
import lab.spec.Primes;
import lab.spec.RouteCall;
import lab.work.nonblocking.DownstreamCalls;
import org.jboss.resteasy.reactive.RestResponse;

/**
 * The routes, on the event loop of the request's connection. Only CPU work ({@code /compute},
 * {@code /metrics}) holds it up.
 */
@Path("/")
@Startup
@NonBlocking
public final class ReactiveRoutes {
  private final ModelContext context;
  private final DownstreamCalls downstream;
  private final Work work;
  private final Answer up;

  ReactiveRoutes(ModelContext context, DownstreamCalls downstream, Work work) {
    this.context = context;
    this.downstream = downstream;
    this.work = work;
    this.up = Bodies.up(context.model());
  }

  @GET
  public Uni<RestResponse<byte[]>> root(RoutingContext request) {
    RouteCall call = Exchange.begin(request);
    return work.wait(call.value("wait_ms"))
        .map(waited -> Bodies.hello(context.model(), Thread.currentThread().getName()))
        .map(Responses::of);
  }

  @GET
  @Path("downstream")
  public Uni<RestResponse<byte[]>> downstream(RoutingContext request) {
    var _ = Exchange.begin(request);
    return Uni.createFrom().completionStage(downstream::call).map(Responses::of);
  }

  @GET
  @Path("synchronized")
  public Uni<RestResponse<byte[]>> downstreamSynchronized(RoutingContext request) {
    return downstream(request);
  }

  @GET
  @Path("health")
  public RestResponse<byte[]> health(RoutingContext request) {
    var _ = Exchange.begin(request);
    return Responses.of(up);
  }

  @GET
  @Path("compute")
  public RestResponse<byte[]> compute(RoutingContext request) {
    int limit = Exchange.begin(request).value("limit");
    return Responses.of(Bodies.compute(limit, Primes.sumUpTo(limit)));
  }

  @GET
  @Path("block")
  public Uni<RestResponse<byte[]>> block(RoutingContext request) {
    RouteCall call = Exchange.begin(request);
    return work.wait(call.value("wait_ms")).map(Bodies::block).map(Responses::of);
  }

  @GET
  @Path("file")
  public Uni<RestResponse<byte[]>> file(RoutingContext request) {
    RouteCall call = Exchange.begin(request);
    return work.file(call.value("lines")).map(Bodies::file).map(Responses::of);
  }

  @GET
  @Path("metrics")
  public RestResponse<byte[]> metrics(RoutingContext request) {
    var _ = Exchange.begin(request);
    return Responses.of(Bodies.metrics(context.exposition().get()));
  }
}
