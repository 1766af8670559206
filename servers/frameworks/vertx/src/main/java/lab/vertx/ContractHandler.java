package lab.vertx;

import io.vertx.core.Handler;
import io.vertx.ext.web.RoutingContext;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import lab.observe.RequestMetrics;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.RouteCall;
import lab.spec.Routes;

/**
 * What the contract wants around every route: parameters are checked and refused, the model is
 * named, requests are counted and timed.
 */
final class ContractHandler implements Handler<RoutingContext> {
  private static final Logger LOG = System.getLogger(ContractHandler.class.getName());

  private final String model;
  private final RequestMetrics requests;
  private final Routes routes;

  ContractHandler(ModelContext lab) {
    model = lab.model();
    requests = lab.requests();
    routes = lab.routes();
  }

  @Override
  public void handle(RoutingContext routing) {
    var request = routing.request();
    RouteCall call =
        routes.resolve(request.method().name(), routing.normalizedPath(), request.query());
    Exchange.begin(routing, call, requests);
    var _ = routing.response().putHeader(ModelContext.MODEL_HEADER, model);
    Answer refusal = call.refusal();
    if (refusal == null) {
      routing.next();
    } else {
      Answers.send(refusal, routing);
    }
  }

  /** Answers for a route that failed. */
  void fail(RoutingContext routing) {
    LOG.log(Level.ERROR, "a bug: " + routing.normalizedPath() + " failed", routing.failure());
    Answers.send(Answer.INTERNAL_ERROR, routing);
  }
}
