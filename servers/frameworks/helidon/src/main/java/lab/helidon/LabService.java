package lab.helidon;

import io.helidon.webserver.http.HttpRules;
import io.helidon.webserver.http.HttpService;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.List;
import lab.spec.Answer;
import lab.spec.RouteCall;
import lab.work.blocking.BlockingRoutes;

/** The routes. Their handlers block the virtual thread of the connection. */
final class LabService implements HttpService {
  private static final Logger LOG = System.getLogger(LabService.class.getName());

  private final List<String> paths;
  private final BlockingRoutes routes;

  LabService(List<String> paths, BlockingRoutes routes) {
    this.paths = paths;
    this.routes = routes;
  }

  @Override
  public void routing(HttpRules rules) {
    for (String path : paths) {
      var _ = rules.get(path, this::handle);
    }
  }

  private void handle(ServerRequest request, ServerResponse response) throws InterruptedException {
    RouteCall call = request.context().get(RouteCall.class).orElseThrow();
    Answers.send(answer(call), request, response);
  }

  private Answer answer(RouteCall call) throws InterruptedException {
    try {
      return routes.answer(call);
    } catch (RuntimeException | Error e) {
      LOG.log(Level.ERROR, "a bug: " + call.route().path() + " failed", e);
      return Answer.INTERNAL_ERROR;
    }
  }
}
