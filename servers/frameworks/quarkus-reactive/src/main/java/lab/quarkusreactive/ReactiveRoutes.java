package lab.quarkusreactive;

import io.quarkus.runtime.Startup;
import io.smallrye.common.annotation.NonBlocking;
import io.smallrye.mutiny.Uni;
import io.vertx.ext.web.RoutingContext;
import io.vertx.mutiny.core.Vertx;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import java.time.Duration;
import lab.quarkus.Exchange;
import lab.quarkus.Responses;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.BlockTheLoop;
import lab.spec.Bodies;
import lab.spec.RouteCall;
import lab.work.nonblocking.DownstreamCalls;
import org.jboss.resteasy.reactive.RestResponse;

/** The routes, on the event loop of the request's connection, which only CPU work holds up. */
@Path("/")
@Startup
@NonBlocking
public final class ReactiveRoutes {
  private final ModelContext context;
  private final DownstreamCalls downstream;
  private final Vertx vertx;
  private final BlockTheLoop blockTheLoop;
  private final Answer up;

  ReactiveRoutes(ModelContext context, DownstreamCalls downstream, Vertx vertx) {
    this.context = context;
    this.downstream = downstream;
    this.vertx = vertx;
    this.blockTheLoop = context.settings().blockTheLoop();
    this.up = Bodies.up(context.model());
  }

  @GET
  public Uni<RestResponse<byte[]>> root(RoutingContext request) {
    return answer(Exchange.begin(request)).map(Responses::of);
  }

  @GET
  @Path("{route}")
  public Uni<RestResponse<byte[]>> route(RoutingContext request) {
    return root(request);
  }

  private Uni<Answer> answer(RouteCall call) {
    return switch (call.route()) {
      case ROOT ->
          pause(call).map(_ -> Bodies.hello(context.model(), Thread.currentThread().getName()));
      case DOWNSTREAM, SYNCHRONIZED -> Uni.createFrom().completionStage(downstream::call);
      case HEALTH -> Uni.createFrom().item(up);
      case COMPUTE -> Uni.createFrom().item(Bodies.compute(call.value("limit")));
      case BLOCK -> pause(call).map(Bodies::block);
      case FILE ->
          vertx
              .executeBlocking(() -> context.file().read(call.value("lines")), false)
              .map(Bodies::file);
      case METRICS -> Uni.createFrom().item(Bodies.metrics(context.exposition().get()));
      default -> throw new IllegalStateException(call.route() + " is not served");
    };
  }

  /** Waits as long as asked; on an event loop Quarkus makes the delay a timer of its. */
  private Uni<Integer> pause(RouteCall call) {
    int millis = call.value("wait_ms");
    Uni<Integer> item = Uni.createFrom().item(millis);
    if (blockTheLoop.blocks()) {
      return item.invoke(blockTheLoop::hold);
    }
    return millis == 0 ? item : item.onItem().delayIt().by(Duration.ofMillis(millis));
  }
}
