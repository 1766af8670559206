package lab.contract;

import java.util.List;

/** The traffic port's routes. The label {@code route} of every metric is {@link #path()}. */
public enum Route {
  /** JSON hello after a simulated wait. */
  ROOT("/", new IntOption("wait_ms", 10, 0, 60_000)),
  /** One call of the downstream; its body is the answer. */
  DOWNSTREAM("/downstream"),
  /** Says that the request path works; no work. */
  HEALTH("/health"),
  /** What was asked for is no route: one label for all, so that clients cannot make series. */
  NONE("none");

  private final String path;

  @SuppressWarnings("ImmutableEnumChecker") // List.of.
  private final List<IntOption> parameters;

  Route(String path, IntOption... parameters) {
    this.path = path;
    this.parameters = List.of(parameters);
  }

  public String path() {
    return path;
  }

  /** Query parameters, each with its limits; any other is refused. */
  public List<IntOption> parameters() {
    return parameters;
  }
}
