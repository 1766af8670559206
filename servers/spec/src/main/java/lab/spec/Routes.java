package lab.spec;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** A server's routes; any other path is a 404. Without a query nothing is allocated. */
public final class Routes {
  private final Map<String, RouteCall> withDefaults;
  private final List<String> paths;

  public Routes(Collection<Route> routes) {
    withDefaults =
        routes.stream().collect(Collectors.toUnmodifiableMap(Route::path, RouteCall::withDefaults));
    paths = withDefaults.keySet().stream().sorted().toList();
  }

  /** In alphabetical order. */
  public List<String> paths() {
    return paths;
  }

  /** Resolves a method, a decoded path and a raw query without its question mark, or null. */
  public RouteCall resolve(String method, String path, @Nullable String query) {
    RouteCall call = withDefaults.get(path);
    if (call == null) {
      return RouteCall.refused(Route.NONE, Answer.notFound(paths));
    }
    if (!method.equals("GET")) {
      return RouteCall.refused(call.route(), Answer.METHOD_NOT_ALLOWED);
    }
    if (query == null || query.isEmpty()) {
      return call;
    }
    try {
      return call.with(query);
    } catch (BadValueException e) {
      return RouteCall.refused(call.route(), Answer.badRequest(e));
    }
  }
}
