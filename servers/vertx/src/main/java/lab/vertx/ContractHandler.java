package lab.vertx;

import static java.util.Objects.requireNonNull;

import io.vertx.core.Handler;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.ext.web.RoutingContext;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import lab.contract.Answer;
import lab.contract.ModelContext;
import lab.contract.Outcome;
import lab.contract.RequestMetrics;
import lab.contract.RouteCall;

/**
 * What the contract wants around every route: parameters are checked and refused, the model is
 * named, requests are counted and timed. Nothing tells it since when a request waits for the loop,
 * so that the queue is not measured.
 */
final class ContractHandler implements Handler<RoutingContext> {
  private static final Logger LOG = System.getLogger(ContractHandler.class.getName());
  private static final long NO_QUEUE = 0;
  private static final String CALL = "lab.call";

  private final String model;
  private final RequestMetrics requests;

  ContractHandler(ModelContext lab) {
    model = lab.model();
    requests = lab.requests();
  }

  /** The call that a request was resolved to. */
  static RouteCall call(RoutingContext routing) {
    return requireNonNull(routing.<RouteCall>get(CALL));
  }

  @Override
  public void handle(RoutingContext routing) {
    long begun = System.nanoTime();
    HttpServerRequest request = routing.request();
    RouteCall call =
        RouteCall.resolve(request.method().name(), routing.normalizedPath(), request.query());
    requests.begun(call.route());
    var _ =
        routing.addEndHandler(
            ended ->
                requests.ended(
                    call.route(),
                    ended.succeeded()
                        ? Outcome.ofStatus(routing.response().getStatusCode())
                        : Outcome.ABORTED,
                    NO_QUEUE,
                    System.nanoTime() - begun));
    var _ = routing.response().putHeader(ModelContext.MODEL_HEADER, model);
    Answer refusal = call.refusal();
    if (refusal == null) {
      var _ = routing.put(CALL, call);
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
