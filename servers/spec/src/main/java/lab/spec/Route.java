package lab.spec;

import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/** The traffic port's routes. The label {@code route} of every metric is {@link #path()}. */
public enum Route {
  /** JSON hello after a simulated wait. */
  ROOT("/", wait(10)),
  /** One call of the downstream; its body is the answer. */
  DOWNSTREAM("/downstream"),
  /** The same inside {@code synchronized}, where before JDK 24 (JEP 491) a carrier is kept. */
  SYNCHRONIZED("/synchronized"),
  /** Says that the request path works; no work. */
  HEALTH("/health"),
  /** Sum of the primes up to a limit: CPU. */
  COMPUTE("/compute", new IntOption("limit", 50_000, 2, 1_000_000)),
  /** A wait: what threads are cheap or dear for. */
  BLOCK("/block", wait(300)),
  /** Reads lines of a generated file: page cache and allocation. */
  FILE("/file", lines()),
  /** The metrics through the request path, beside the work they measure: see what that does. */
  METRICS("/metrics"),
  // The demonstrations of work in parallel, which some lanes have.

  /** A wait and a file in parallel. */
  AGGREGATE("/aggregate", wait(300), lines()),
  /** The same, where there are two ways, by {@code CompletableFuture}. */
  AGGREGATE_OLD("/aggregate-old", wait(300), lines()),
  /** Three branches, the first to succeed wins, the losers are cancelled. */
  FIRST_SUCCESS(
      "/first-success",
      new IntOption("fast_ms", 100, 1, 60_000),
      new IntOption("slow_ms", 300, 1, 60_000)),
  /** A file, and a wait that is given up after a time. */
  AGGREGATE_WITH_FALLBACK(
      "/aggregate-with-fallback", wait(300), new IntOption("timeout_ms", 200, 1, 60_000), lines()),
  /** Many waits in parallel. */
  MULTI_AGGREGATE("/multi-aggregate", new IntOption("branches", 3, 1, 100), wait(300)),
  /** What was asked for is no route: one label for all, so that clients cannot make series. */
  NONE("none");

  /** The routes of every lane. */
  public static final Set<Route> COMMON = Collections.unmodifiableSet(EnumSet.range(ROOT, METRICS));

  /** The routes of a lane that has the demonstrations, too. */
  public static final Set<Route> WITH_DEMONSTRATIONS =
      Collections.unmodifiableSet(EnumSet.range(ROOT, MULTI_AGGREGATE));

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

  private static IntOption wait(int fallbackMs) {
    return new IntOption("wait_ms", fallbackMs, 0, 60_000);
  }

  private static IntOption lines() {
    return new IntOption("lines", 10_000, 1, LineFile.LINES);
  }
}
