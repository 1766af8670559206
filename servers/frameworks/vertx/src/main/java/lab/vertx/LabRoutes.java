package lab.vertx;

import static java.util.Objects.requireNonNull;

import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.ext.web.Router;
import java.util.function.Function;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.Bodies;
import lab.spec.Primes;
import lab.spec.Route;
import lab.spec.RouteCall;
import lab.work.nonblocking.DownstreamCalls;

/**
 * The routes of one event loop. What waits is a future; what may block is handed to Vert.x's worker
 * threads; CPU work stays on the loop, and holds up all its other requests.
 */
final class LabRoutes {
  private final ModelContext lab;
  private final Vertx vertx;
  private final DownstreamCalls downstream;
  private final Waits waits;
  private final Answer up;

  LabRoutes(ModelContext lab, Vertx vertx, DownstreamCalls downstream) {
    this.lab = lab;
    this.vertx = vertx;
    this.downstream = downstream;
    waits = new Waits(vertx, lab.settings().blockTheLoop());
    up = Bodies.up(lab.model());
  }

  void addTo(Router router) {
    ContractHandler contract = new ContractHandler(lab);
    var _ = router.route().handler(contract).failureHandler(contract::fail);
    add(router, Route.ROOT, this::hello);
    add(router, Route.DOWNSTREAM, this::downstream);
    add(router, Route.SYNCHRONIZED, this::downstream);
    add(router, Route.HEALTH, _ -> Future.succeededFuture(up));
    add(router, Route.COMPUTE, this::compute);
    add(router, Route.BLOCK, this::block);
    add(router, Route.FILE, this::file);
    add(router, Route.METRICS, this::metrics);
  }

  private static void add(Router router, Route route, Function<RouteCall, Future<Answer>> work) {
    var _ =
        router
            .get(route.path())
            .handler(
                request -> {
                  var _ =
                      work.apply(requireNonNull(Exchange.of(request)).call())
                          .onSuccess(answer -> Answers.send(answer, request))
                          .onFailure(request::fail);
                });
  }

  private Future<Answer> hello(RouteCall call) {
    return waits
        .after(call.value("wait_ms"))
        .map(_ -> Bodies.hello(lab.model(), Thread.currentThread().getName()));
  }

  /** A call may end on another loop: the answer comes back to this one. */
  private Future<Answer> downstream(RouteCall call) {
    return Future.fromCompletionStage(downstream.call(), vertx.getOrCreateContext());
  }

  private Future<Answer> compute(RouteCall call) {
    int limit = call.value("limit");
    return Future.succeededFuture(Bodies.compute(limit, Primes.sumUpTo(limit)));
  }

  private Future<Answer> block(RouteCall call) {
    int waitMs = call.value("wait_ms");
    return waits.after(waitMs).map(_ -> Bodies.block(waitMs));
  }

  private Future<Answer> file(RouteCall call) {
    int lines = call.value("lines");
    return vertx.executeBlocking(() -> lab.file().read(lines), false).map(Bodies::file);
  }

  private Future<Answer> metrics(RouteCall call) {
    return Future.succeededFuture(Bodies.metrics(lab.exposition().get()));
  }
}
