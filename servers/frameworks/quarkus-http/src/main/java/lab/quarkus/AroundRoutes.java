package lab.quarkus;

import io.quarkus.vertx.http.runtime.filters.Filters;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerResponse;
import io.vertx.ext.web.RoutingContext;
import jakarta.enterprise.event.Observes;
import jakarta.inject.Singleton;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.Outcome;
import lab.spec.RouteCall;

/** The filter around all routes, on the event loop: resolves, refuses, names the model, counts. */
@Singleton
final class AroundRoutes {
  private static final int FIRST = 10_000;

  private final ModelContext context;

  AroundRoutes(ModelContext context) {
    this.context = context;
  }

  void register(@Observes Filters filters) {
    filters.register(this::handle, FIRST);
  }

  private void handle(RoutingContext request) {
    RouteCall call =
        context.resolve(
            request.request().method().name(), request.normalizedPath(), request.request().query());
    Exchange exchange = Exchange.open(request, call, context.requests());
    HttpServerResponse response = request.response();
    response.putHeader(ModelContext.MODEL_HEADER, context.model());
    request.addEndHandler(
        end ->
            exchange.end(
                end.succeeded() ? Outcome.ofStatus(response.getStatusCode()) : Outcome.ABORTED));
    Answer refusal = call.refusal();
    if (refusal == null) {
      request.next();
    } else {
      exchange.begin();
      refuse(response, refusal);
    }
  }

  private static void refuse(HttpServerResponse response, Answer refusal) {
    response.setStatusCode(refusal.status());
    response.putHeader(HttpHeaders.CONTENT_TYPE, refusal.contentType());
    if (refusal.status() == 405) {
      response.putHeader(HttpHeaders.ALLOW, "GET");
    }
    var _ = response.end(Buffer.buffer(refusal.body()));
  }
}
