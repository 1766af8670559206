package lab.vertx;

import static java.util.Objects.requireNonNull;

import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.BlockTheLoop;
import lab.spec.Bodies;
import lab.spec.RouteCall;
import lab.work.nonblocking.DownstreamCalls;

/** The routes of one event loop. CPU work stays on it, and holds up all its other requests. */
final class LabRoutes {
  private final ModelContext lab;
  private final Vertx vertx;
  private final DownstreamCalls downstream;
  private final BlockTheLoop blockTheLoop;
  private final Answer up;

  LabRoutes(ModelContext lab, Vertx vertx, DownstreamCalls downstream) {
    this.lab = lab;
    this.vertx = vertx;
    this.downstream = downstream;
    this.blockTheLoop = lab.settings().blockTheLoop();
    this.up = Bodies.up(lab.model());
  }

  void addTo(Router router) {
    ContractHandler contract = new ContractHandler(lab);
    var _ = router.route().handler(contract).failureHandler(contract::fail);
    for (String path : lab.routes().paths()) {
      var _ = router.get(path).handler(this::answer);
    }
  }

  private void answer(RoutingContext request) {
    var _ =
        work(requireNonNull(Exchange.of(request)).call())
            .onSuccess(answer -> Answers.send(answer, request))
            .onFailure(request::fail);
  }

  private Future<Answer> work(RouteCall call) {
    return switch (call.route()) {
      case ROOT ->
          pause(call).map(_ -> Bodies.hello(lab.model(), Thread.currentThread().getName()));
      // A call may end on another loop: the answer comes back to this one.
      case DOWNSTREAM, SYNCHRONIZED ->
          Future.fromCompletionStage(downstream.call(), vertx.getOrCreateContext());
      case HEALTH -> Future.succeededFuture(up);
      case COMPUTE -> Future.succeededFuture(Bodies.compute(call.value("limit")));
      case BLOCK -> pause(call).map(Bodies::block);
      case FILE ->
          vertx
              .executeBlocking(() -> lab.file().read(call.value("lines")), false)
              .map(Bodies::file);
      case METRICS -> Future.succeededFuture(Bodies.metrics(lab.exposition().get()));
      default -> throw new IllegalStateException(call.route() + " is not served");
    };
  }

  /** Waits as long as asked on a timer of the loop, or blocks it as the settings say. */
  private Future<Integer> pause(RouteCall call) {
    int millis = call.value("wait_ms");
    if (blockTheLoop.blocks()) {
      blockTheLoop.hold(millis);
      return Future.succeededFuture(millis);
    }
    // A timer of Vert.x takes at least one millisecond.
    return millis == 0 ? Future.succeededFuture(0) : vertx.timer(millis).map(millis);
  }
}
