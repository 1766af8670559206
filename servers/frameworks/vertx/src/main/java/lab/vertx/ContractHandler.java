package lab.vertx;

import io.vertx.core.Handler;
import io.vertx.ext.web.RoutingContext;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.RouteCall;

/** What the contract wants around every route: resolves, refuses, names the model, counts. */
record ContractHandler(ModelContext lab) implements Handler<RoutingContext> {
  private static final Logger LOG = System.getLogger(ContractHandler.class.getName());

  @Override
  public void handle(RoutingContext routing) {
    var request = routing.request();
    RouteCall call =
        lab.resolve(request.method().name(), routing.normalizedPath(), request.query());
    Exchange.begin(routing, call, lab.requests());
    var _ = routing.response().putHeader(ModelContext.MODEL_HEADER, lab.model());
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
