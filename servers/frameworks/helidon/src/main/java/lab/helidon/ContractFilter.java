package lab.helidon;

import io.helidon.http.Header;
import io.helidon.http.HeaderValues;
import io.helidon.http.HttpPrologue;
import io.helidon.webserver.CloseConnectionException;
import io.helidon.webserver.http.Filter;
import io.helidon.webserver.http.FilterChain;
import io.helidon.webserver.http.RoutingRequest;
import io.helidon.webserver.http.RoutingResponse;
import lab.observe.RequestMetrics;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.Outcome;
import lab.spec.RouteCall;

/** What the contract wants around every route. No queue: it runs on the connection's thread. */
final class ContractFilter implements Filter {
  private final Header model;
  private final ModelContext context;

  ContractFilter(ModelContext context) {
    model = HeaderValues.createCached(ModelContext.MODEL_HEADER, context.model());
    this.context = context;
  }

  @Override
  public void filter(FilterChain chain, RoutingRequest request, RoutingResponse response) {
    long begun = System.nanoTime();
    HttpPrologue prologue = request.prologue();
    RouteCall call =
        context.resolve(
            prologue.method().text(), prologue.uriPath().path(), prologue.query().rawValue());
    RequestMetrics requests = context.requests();
    requests.begun(call.route());
    Outcome outcome = Outcome.ABORTED;
    try {
      var _ = response.header(model);
      Answer refusal = call.refusal();
      if (refusal == null) {
        request.context().register(call);
        chain.proceed();
      } else {
        Answers.send(refusal, request, response);
      }
      outcome = Outcome.ofStatus(response.status().code());
    } finally {
      requests.ended(call.route(), outcome, 0, System.nanoTime() - begun);
    }
    if (request.headers().containsToken(HeaderValues.CONNECTION_CLOSE)) {
      // Helidon says that it closes, but leaves it to the client.
      throw new CloseConnectionException("as the client wishes");
    }
  }
}
