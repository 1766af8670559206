package lab.contract;

import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A request resolved: its route with validated parameters, or the refusal to answer it with.
 * Immutable and shared: a request without a query costs one map lookup and no allocation.
 */
public final class RouteCall {
  private static final Map<String, RouteCall> WITH_DEFAULTS =
      Stream.of(Route.values())
          .filter(route -> route != Route.NONE)
          .map(
              route ->
                  new RouteCall(
                      route, route.parameters().stream().mapToInt(IntOption::fallback).toArray()))
          .collect(Collectors.toUnmodifiableMap(call -> call.route.path(), Function.identity()));

  private static final List<String> PATHS = WITH_DEFAULTS.keySet().stream().sorted().toList();

  private final Route route;
  private final int[] values;
  private final @Nullable Answer refusal;

  private RouteCall(Route route, int[] values) {
    this.route = route;
    this.values = values;
    this.refusal = null;
  }

  private RouteCall(Route route, Answer refusal) {
    this.route = route;
    this.values = new int[0];
    this.refusal = refusal;
  }

  /**
   * Resolves a request line.
   *
   * @param path the decoded path, e.g. {@code /block}
   * @param query the raw query without its question mark, or null
   */
  public static RouteCall resolve(String method, String path, @Nullable String query) {
    RouteCall call = WITH_DEFAULTS.get(path);
    if (call == null) {
      return new RouteCall(Route.NONE, Answer.notFound(PATHS));
    }
    if (!method.equals("GET")) {
      return new RouteCall(call.route, Answer.METHOD_NOT_ALLOWED);
    }
    if (query == null || query.isEmpty()) {
      return call;
    }
    try {
      return new RouteCall(call.route, call.parse(query));
    } catch (BadValueException e) {
      return new RouteCall(call.route, Answer.badRequest(e));
    }
  }

  public Route route() {
    return route;
  }

  /** The answer to give at once, or null when the route's work is to be done. */
  public @Nullable Answer refusal() {
    return refusal;
  }

  /** The value of one of the route's own parameters. */
  public int value(String parameter) {
    int index = index(parameter);
    if (index < 0) {
      throw new IllegalArgumentException(route.path() + " has no parameter " + parameter);
    }
    return values[index];
  }

  private int index(String parameter) {
    List<IntOption> parameters = route.parameters();
    for (int i = 0; i < parameters.size(); i++) {
      if (parameters.get(i).name().equals(parameter)) {
        return i;
      }
    }
    return -1;
  }

  private int[] parse(String query) throws BadValueException {
    int[] parsed = values.clone();
    boolean[] given = new boolean[parsed.length];
    for (String pair : query.split("&", -1)) {
      int equals = pair.indexOf('=');
      String name = equals < 0 ? pair : pair.substring(0, equals);
      int index = index(name);
      if (index < 0) {
        throw new BadValueException(
            "%s takes %s, not '%s'"
                .formatted(
                    route.path(), route.parameters().stream().map(IntOption::name).toList(), name));
      }
      if (given[index]) {
        throw new BadValueException(name + " is given twice");
      }
      given[index] = true;
      parsed[index] = route.parameters().get(index).parse(pair.substring(equals + 1));
    }
    return parsed;
  }
}
