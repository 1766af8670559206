package lab.spec;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A request resolved: its route with validated parameters, or the refusal to answer it with.
 * Immutable, and shared by all requests without a query.
 */
public final class RouteCall {
  /** What stands for a request before there is one. */
  public static final RouteCall NONE = refused(Route.NONE, Answer.notFound(List.of()));

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

  static RouteCall withDefaults(Route route) {
    return new RouteCall(
        route, route.parameters().stream().mapToInt(IntOption::fallback).toArray());
  }

  static RouteCall refused(Route route, Answer refusal) {
    return new RouteCall(route, refusal);
  }

  /** The same route with the values of a query, the others as they are here. */
  RouteCall with(String query) throws BadValueException {
    return new RouteCall(route, parse(query));
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
