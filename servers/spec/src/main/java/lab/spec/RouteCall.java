package lab.spec;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** A request resolved: its route and parameters, or its refusal. Immutable, so it is shared. */
@SuppressWarnings("ArrayRecordComponent") // Never compared.
public record RouteCall(Route route, int[] values, @Nullable Answer refusal) {
  static RouteCall withDefaults(Route route) {
    int[] values = route.parameters().stream().mapToInt(IntOption::fallback).toArray();
    return new RouteCall(route, values, null);
  }

  static RouteCall refused(Route route, Answer refusal) {
    return new RouteCall(route, new int[0], refusal);
  }

  /** The same route with the values of a query, the others as they are here. */
  RouteCall with(String query) throws BadValueException {
    return new RouteCall(route, parse(query), null);
  }

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
