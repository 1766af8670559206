package lab.quarkus;

import static java.util.Objects.requireNonNull;

import io.vertx.ext.web.RoutingContext;
import lab.observe.RequestMetrics;
import lab.spec.Outcome;
import lab.spec.Route;
import lab.spec.RouteCall;

/** One request. Any thread: its client may be gone, on the loop, before the work begins. */
public final class Exchange {
  private static final String KEY = Exchange.class.getName();

  private final RouteCall call;
  private final RequestMetrics metrics;
  private final long receivedNanos = System.nanoTime();
  private long begunNanos;
  private boolean ended;

  private Exchange(RouteCall call, RequestMetrics metrics) {
    this.call = call;
    this.metrics = metrics;
  }

  static Exchange open(RoutingContext request, RouteCall call, RequestMetrics metrics) {
    Exchange exchange = new Exchange(call, metrics);
    request.put(KEY, exchange);
    return exchange;
  }

  /** The work on a request begins, on this thread: what went before was the phase {@code queue}. */
  public static RouteCall begin(RoutingContext request) {
    Exchange exchange = requireNonNull(request.<Exchange>get(KEY));
    exchange.begin();
    return exchange.call;
  }

  synchronized void begin() {
    begunNanos = System.nanoTime();
    if (!ended) {
      metrics.begun(call.route());
    }
  }

  synchronized void end(Outcome outcome) {
    if (begunNanos == 0) {
      begin();
    }
    ended = true;
    Route route = call.route();
    metrics.ended(route, outcome, begunNanos - receivedNanos, System.nanoTime() - begunNanos);
  }
}
