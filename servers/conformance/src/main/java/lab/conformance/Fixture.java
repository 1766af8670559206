package lab.conformance;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.management.JMException;
import javax.management.ObjectName;
import lab.conformance.FakeDownstream.Behaviour;
import lab.conformance.RawClient.RawAnswer;
import lab.conformance.Rules.Rule;
import lab.conformance.RunningServer.Launcher;
import lab.shell.ServerModel;
import lab.spec.BadValueException;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodDescriptor;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.MethodOrdererContext;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.TestMethodOrder;

/**
 * A lane under test: its server and its downstream. Tests share a server where they can. After each
 * test nothing may be left of it, and the knobs are turned back.
 */
@TestMethodOrder(Fixture.SharedFirst.class)
abstract class Fixture {
  /** Tests that share a server before those that start their own. */
  static final class SharedFirst implements MethodOrderer {
    @Override
    public void orderMethods(MethodOrdererContext context) {
      context
          .getMethodDescriptors()
          .sort(
              Comparator.comparing(
                  (MethodDescriptor test) ->
                      ContractTest.class.isAssignableFrom(test.getMethod().getDeclaringClass())));
    }
  }

  /** Long enough for calls that a test holds: none of them is to end by itself. */
  static final long HELD_MS = 600_000;

  /** Only a broken server exceeds it; no test waits for it to pass. */
  static final Duration PATIENCE = Duration.ofSeconds(60);

  static final String GET = "GET /health HTTP/1.1\r\nHost: lab\r\n";
  static final String GET_METRICS = "GET /metrics HTTP/1.1\r\nHost: lab\r\n\r\n";
  static final String CLOSE = "Connection: close";

  // What a lane may have, by the rules of FAIRNESS.md.
  static final String DEMONSTRATIONS = "9.1";
  static final String WORKER_POOL = "9.2";
  static final String CLIENT_LIMITS = "9.3";
  static final String UNREAD = "9.4";
  static final String SETTINGS_OF_A_JVM = "9.5";

  /** What the knobs of a shared server are turned back to, where it has them. */
  private static final Map<String, Long> KNOBS =
      Map.of(
          "downstream_connections", 20_000L,
          "downstream_timeout_ms", HELD_MS,
          "pool_size", 200L,
          "queue_bound", 0L);

  private record Started(RunningServer server, FakeDownstream downstream, boolean isShared) {}

  private static final String TOKEN = "token of the tests";

  /** Its SHA-256, by which a server knows it. */
  private static final String TOKEN_SUM =
      "566ae962c6d0d4423a4f42c0cc7c536461d8788dd65ee488ef4b0b358d829500";

  private static @Nullable Started started;

  final ServerModel model;
  private final String threadName;
  private final Queue<RawClient> clients = new ConcurrentLinkedQueue<>();
  private String rule = "";

  Fixture(ServerModel model, String threadName) {
    this.model = model;
    this.threadName = threadName;
  }

  @BeforeEach
  void readRule(TestInfo test) {
    Rule annotation = test.getTestMethod().orElseThrow().getAnnotation(Rule.class);
    rule = annotation == null ? "" : annotation.value()[0];
  }

  @AfterEach
  void leaveNothing() throws Exception {
    for (RawClient client : clients) {
      client.close();
    }
    Started last = started;
    if (last == null || !last.isShared()) {
      stop();
      return;
    }
    last.downstream().behave(Behaviour.ANSWER);
    String settings = readBack();
    for (var knob : KNOBS.entrySet()) {
      if (has(settings, knob.getKey())) {
        turn(knob.getKey(), knob.getValue());
      }
    }
    await(() -> sum("lab_http_requests_in_flight{") == 0 && leased() == 0);
    last.downstream().forgetHeld();
  }

  /** How the names of the threads begin that answer {@code /}. */
  protected String threadName() {
    return threadName;
  }

  /** What a framework as it ships reads back and its levelled lane does not; else nothing. */
  protected List<String> asShipped() {
    return List.of();
  }

  /** What the lane is set to besides its defaults. */
  protected Map<String, String> settings() {
    return Map.of();
  }

  /** What was packaged, where a JVM can have one of the model only: then it has its own. */
  protected @Nullable Path jar() {
    return null;
  }

  final boolean isInThisJvm() {
    return jar() == null;
  }

  final Launcher launcher() {
    Path jar = jar();
    return jar == null ? InThisJvm.of(model) : ChildServer.ofJar(jar);
  }

  private Rules rules() {
    return Rules.of(model.name());
  }

  /** Whether the lane has what a lane may have. */
  final boolean chooses(String other) {
    return rules().chosen().contains(other);
  }

  final void assumeChosen(String other) {
    assumeTrue(chooses(other), "the lane does not follow rule " + other);
  }

  /** What the lane does instead of the test's rule, or nothing. */
  final String deviation() {
    return rules().instead().getOrDefault(rule, "");
  }

  /** What happened is as the test's rule says, or else as the lane's deviation from it. */
  final void verify(String happened, String... allowed) {
    verifyRow(rule, happened, allowed);
  }

  final void verifyRow(String row, String happened, String... allowed) {
    rules().verify(row, happened, List.of(allowed));
  }

  /** Starts a server for one test, with these settings besides. */
  protected final void start(String... namesAndValues) throws IOException, BadValueException {
    start(launcher(), false, namesAndValues);
  }

  final void start(Launcher launcher, boolean isShared, String... namesAndValues)
      throws IOException, BadValueException {
    stop();
    FakeDownstream downstream = new FakeDownstream();
    Map<String, String> environment =
        new HashMap<>(
            Map.of(
                "LAB_HTTP_PORT", "0",
                "LAB_MANAGEMENT_PORT", "0",
                "LAB_BACKLOG", "1234",
                "LAB_LOOPS", "2",
                "LAB_FRONTS", "2",
                "LAB_DOWNSTREAM_URL", downstream.url(),
                "LAB_DOWNSTREAM_TIMEOUT_MS", Long.toString(HELD_MS),
                "LAB_TOKEN_SUMS", "%s=%s".formatted(model.name(), TOKEN_SUM)));
    environment.putAll(settings());
    for (int i = 0; i < namesAndValues.length; i += 2) {
      environment.put(namesAndValues[i], namesAndValues[i + 1]);
    }
    started = new Started(launcher.start(environment), downstream, isShared);
  }

  @AfterAll
  static void stop() throws IOException {
    Started last = started;
    started = null;
    if (last != null) {
      last.server().close();
      last.downstream().close();
    }
  }

  /** The test's own server, or the one that tests share. */
  private Started started() {
    if (started == null) {
      try {
        start(launcher(), true);
      } catch (IOException | BadValueException e) {
        throw new AssertionError(e);
      }
    }
    return requireNonNull(started);
  }

  final RunningServer server() {
    return started().server();
  }

  protected final FakeDownstream downstream() {
    return started().downstream();
  }

  /** A client that is closed after the test, at the latest. */
  protected final RawClient client() throws IOException {
    return client(0);
  }

  /** A client whose kernel keeps so many bytes unread, 0 = as many as it likes. */
  final RawClient client(int receiveBytes) throws IOException {
    RawClient client = new RawClient(server().httpPort(), receiveBytes);
    clients.add(client);
    return client;
  }

  /** Clients that have called the downstream, one after the other, which holds its answers. */
  final List<RawClient> heldClients(int count) throws Exception {
    downstream().behave(Behaviour.HOLD);
    List<RawClient> held = new ArrayList<>();
    while (held.size() < count) {
      held.add(client().request("GET", "/downstream"));
      await(() -> leased() > 0 && leased() + pending() == held.size());
    }
    return held;
  }

  final RawClient heldClient() throws Exception {
    return heldClients(1).getFirst();
  }

  protected final RawAnswer get(String target) throws IOException {
    try (RawClient client = new RawClient(server().httpPort())) {
      return client.get(target);
    }
  }

  /** The status of an answer; 0 when there is none. */
  final int status(String target) {
    try {
      return get(target).status();
    } catch (IOException e) {
      return 0;
    }
  }

  final boolean isWell() {
    return status("/health") == 200;
  }

  /** A call of the management port. */
  final RawAnswer call(String method, String path, String body) {
    try (RawClient client = new RawClient(server().managementPort())) {
      return client
          .request(method, path, "Lab-Token: " + TOKEN, "Content-Length: " + body.length())
          .send(body)
          .read();
    } catch (IOException e) {
      throw new AssertionError(method + " " + path, e);
    }
  }

  /** The settings in force. */
  final String readBack() {
    return call("GET", "/settings", "").body();
  }

  final String allMetrics() {
    return call("GET", "/metrics", "").body();
  }

  static boolean has(String settings, String name) {
    return !settings.contains("\"" + name + "\":null");
  }

  final void turn(String knob, long value) {
    var answer = call("PATCH", "/settings", "{\"%s\":%d}".formatted(knob, value));
    assertThat(answer.status()).as(answer.body()).isEqualTo(200);
  }

  /** The value of a metric; 0 when there is none. */
  protected final double metric(String nameAndLabels) {
    return sum(nameAndLabels + " ");
  }

  /** The values of all metrics that start with these characters. */
  final double sum(String start) {
    return allMetrics()
        .lines()
        .filter(line -> line.startsWith(start))
        .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1)))
        .sum();
  }

  protected final double requests(String outcome, String route) {
    return metric("lab_http_requests_total{outcome=\"%s\",route=\"%s\"}".formatted(outcome, route));
  }

  /** Seconds of all requests of a route so far, in one of their phases. */
  final double seconds(String phase, String route) {
    return metric(
        "lab_http_request_seconds_sum{phase=\"%s\",route=\"%s\"}".formatted(phase, route));
  }

  final double calls(String outcome) {
    return metric("lab_downstream_calls_total{outcome=\"%s\"}".formatted(outcome));
  }

  protected final void awaitInFlight(String route, int count) throws Exception {
    await(() -> metric("lab_http_requests_in_flight{route=\"%s\"}".formatted(route)) == count);
  }

  /** Calls that have one of the connections to the downstream. */
  final int leased() {
    return mbean("DownstreamConnections", "Leased");
  }

  /** Calls that wait for one of the connections to the downstream. */
  final int pending() {
    return mbean("DownstreamConnections", "Pending");
  }

  final int mbean(String type, String attribute) {
    return (int) attribute("lab:type=" + type, attribute);
  }

  final Object attribute(String bean, String attribute) {
    try {
      return server().mbeans().getAttribute(new ObjectName(bean), attribute);
    } catch (IOException | JMException e) {
      throw new AssertionError(bean + "." + attribute, e);
    }
  }

  /** What so many callers return that are at work at once. */
  static <T extends @Nullable Object> List<T> atOnce(int callers, Callable<T> caller)
      throws Exception {
    List<T> returned = new ArrayList<>();
    // Not virtual: they would wait for the carriers of the server.
    try (ExecutorService threads = Executors.newFixedThreadPool(callers)) {
      for (Future<T> each : threads.invokeAll(Collections.nCopies(callers, caller))) {
        returned.add(each.get());
      }
    }
    return returned;
  }

  /** Waits until a condition holds that must come to hold. */
  protected static void await(Callable<Boolean> condition) throws Exception {
    long deadline = System.nanoTime() + PATIENCE.toNanos();
    while (!condition.call()) {
      assertThat(System.nanoTime()).as("waited %s", PATIENCE).isLessThan(deadline);
      Thread.sleep(5);
    }
  }
}
