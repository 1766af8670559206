package lab.vertx;

import io.vertx.core.AsyncResult;
import io.vertx.ext.web.RoutingContext;
import lab.observe.RequestMetrics;
import lab.spec.Outcome;
import lab.spec.RouteCall;
import org.jspecify.annotations.Nullable;

/** One request to the last byte of its answer. Its wait for the loop is unknown. Loop only. */
final class Exchange {
  private static final String KEY = "lab.exchange";

  private final RouteCall call;
  private final RequestMetrics requests;
  private final long begun = System.nanoTime();
  private boolean ended;

  private Exchange(RouteCall call, RequestMetrics requests) {
    this.call = call;
    this.requests = requests;
  }

  static void begin(RoutingContext routing, RouteCall call, RequestMetrics requests) {
    Exchange begun = new Exchange(call, requests);
    requests.begun(call.route());
    var _ = routing.put(KEY, begun);
    // That an answer was handed over is told here too, before anything of it is written.
    var _ =
        routing.addEndHandler(
            handedOver -> {
              if (handedOver.failed()) {
                begun.end(Outcome.ABORTED);
              }
            });
  }

  /** Null for a request that could not be resolved: the router itself may fail. */
  static @Nullable Exchange of(RoutingContext routing) {
    return routing.get(KEY);
  }

  RouteCall call() {
    return call;
  }

  void written(AsyncResult<?> written, int status) {
    end(written.succeeded() ? Outcome.ofStatus(status) : Outcome.ABORTED);
  }

  private void end(Outcome outcome) {
    if (!ended) {
      ended = true;
      requests.ended(call.route(), outcome, 0, System.nanoTime() - begun);
    }
  }
}
