package lab.conformance;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.RuntimeMXBean;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.http.HttpClient;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import javax.management.JMException;
import javax.management.ObjectName;
import lab.conformance.FakeDownstream.Behaviour;
import lab.conformance.RawClient.RawAnswer;
import lab.shell.LabServer;
import lab.shell.ServerModel;
import lab.shell.TrafficServer;
import lab.spec.BadValueException;
import lab.spec.Route;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What every server model must do, seen from outside: through sockets, on free ports. A test starts
 * the model it needs, or, where it leaves nothing behind, asks one that such tests share. Nothing
 * here knows how the model waits.
 */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
public abstract class ContractTest {
  /** For all test classes of the JVM; its threads are daemons. */
  private static final HttpClient HTTP = HttpClient.newHttpClient();

  /** Long enough for calls that a test holds: none of them is to end by itself. */
  static final String HELD_MS = "600000";

  /** What only a broken server exceeds; no test waits for it to pass. */
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  /** The place of tests that share a server: before all others, as a JVM has one of its beans. */
  private static final int SHARED = 1;

  private static @Nullable RunningServer common;

  private final FakeDownstream downstream = new FakeDownstream();
  private @Nullable RunningServer started;

  private final ServerModel model;
  private final String threadName;
  private final Set<Trait> traits;

  /** What some lanes have, and others do not. */
  public enum Trait {
    /** The demonstration routes. */
    DEMONSTRATIONS,
    /** Requests wait for one of a pool of threads, with all that is asked of such a pool. */
    WORKER_POOL,
    /** A limit on how many clients may idle, and on how long one may take to read its answer. */
    LIMITS_CLIENTS,
    /** Event loops of its own read the downstream's answers, and tell how late. */
    TELLS_UNREAD,
    /** A request line without a version is HTTP/0.9 to the server, and no nonsense. */
    SPEAKS_HTTP_09,
    /** The server closes the connection of a request that it refused for a full queue. */
    CLOSES_AFTER_503,
    /**
     * A call is not made once more when the kept connection turns out to be closed; MODEL.md says
     * so.
     */
    ASKS_ONCE
  }

  /**
   * @param model the model under test
   * @param threadName start of the names of the threads that answer {@code /}
   */
  protected ContractTest(ServerModel model, String threadName, Trait... traits) {
    this.model = model;
    this.threadName = threadName;
    this.traits = Set.of(traits);
  }

  protected final ServerModel model() {
    return model;
  }

  protected String threadName() {
    return threadName;
  }

  private boolean has(Trait trait) {
    return traits.contains(trait);
  }

  private Set<Route> routes() {
    return has(Trait.DEMONSTRATIONS) ? Route.WITH_DEMONSTRATIONS : Route.COMMON;
  }

  /**
   * How a downstream may not end its body, as the framework's client cannot read it so: names of
   * {@link Behaviour}, each with its reason in MODEL.md. The lab's own downstream always says how
   * long its body is, which every client must understand.
   */
  protected Set<String> unreadableBodies() {
    return Set.of();
  }

  /**
   * What a framework as it ships reads back and its levelled lane does not, as in {@code
   * /settings}; nothing where there is no framework.
   */
  protected List<String> asShipped() {
    return List.of();
  }

  /** Its main class, if it is to be tried in a process that has few descriptors; else null. */
  protected @Nullable Class<?> main() {
    return null;
  }

  /** What the lane under test is set to besides its defaults. */
  protected Map<String, String> settings() {
    return Map.of();
  }

  /** How it is started: beside the tests, unless a model says otherwise. */
  protected Launcher launcher() {
    return new InThisJvm(model());
  }

  /** How it is started with another time to idle, if that holds for a whole JVM. */
  protected Launcher launcherOfItsOwn() {
    return launcher();
  }

  /** Fixed for the JVM; a test may try other values. */
  @BeforeEach
  @AfterEach
  void forgetFlagsOfTheJdksServer() {
    System.clearProperty("sun.net.httpserver.maxIdleConnections");
    System.clearProperty("sun.net.httpserver.idleInterval");
  }

  @AfterEach
  void stop() throws IOException {
    if (started != null) {
      started.close();
    }
    downstream.close();
  }

  @AfterAll
  static void stopShared() throws IOException {
    RunningServer server = common;
    common = null;
    if (server != null) {
      server.close();
    }
  }

  // --- routes -------------------------------------------------------------------------------

  @Order(SHARED)
  @Test
  void helloNamesTheModelAndTheThread() throws Exception {
    RawAnswer answer = get(shared(), "/?wait_ms=0");
    assertThat(answer.status()).isEqualTo(200);
    assertThat(answer.body())
        .startsWith(
            "{\"message\":\"hello\",\"model\":\"%s\",\"thread\":\"%s"
                .formatted(model().name(), threadName()));
    assertThat(answer.headers())
        .containsEntry("Lab-Model", model().name())
        .containsEntry("Content-Type", "application/json");
  }

  @Order(SHARED)
  @Test
  void helloWaitsTenMillisecondsUnlessToldOtherwise() throws Exception {
    RunningServer server = shared();
    long begun = System.nanoTime();
    assertThat(get(server, "/").status()).isEqualTo(200);
    assertThat(System.nanoTime() - begun).isGreaterThanOrEqualTo(10_000_000);
  }

  @ParameterizedTest
  @ValueSource(strings = {"ANSWER", "ANSWER_IN_CHUNKS", "ANSWER_UNTIL_CLOSE"})
  void theDownstreamsBodyIsTheAnswer(Behaviour behaviour) throws Exception {
    downstream.behave(behaviour);
    RunningServer server = start();
    RawAnswer answer = get(server, "/downstream");
    assertThat(get(server, "/synchronized").body()).isEqualTo(answer.body());
    if (unreadableBodies().contains(behaviour.name())) {
      assertThat(answer.status()).isEqualTo(502);
      return;
    }
    assertThat(answer.status()).isEqualTo(200);
    assertThat(answer.body()).isEqualTo(FakeDownstream.BODY);
  }

  @Order(SHARED)
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          /compute                             | {"limit":50000,"sum_of_primes":121013308}
          /compute?limit=10                    | {"limit":10,"sum_of_primes":17}
          /block?wait_ms=5                     | {"waited_ms":5}
          /file                                | {"lines":10000,"characters":470000}
          /file?lines=100000                   | {"lines":100000,"characters":4700000}
          /aggregate?wait_ms=5&lines=3         | {"waited_ms":5,"lines":3,"characters":141}
          /aggregate-old?wait_ms=5&lines=3     | {"waited_ms":5,"lines":3,"characters":141}
          /first-success?fast_ms=20&slow_ms=60000 | {"winner":"fast","failed":1,"cancelled":1}
          /first-success?fast_ms=60000&slow_ms=20 | {"winner":"slow","failed":1,"cancelled":1}
          /aggregate-with-fallback?wait_ms=60000&timeout_ms=20&lines=2 | {"wait":"fallback","lines":2,"characters":94}
          /aggregate-with-fallback?wait_ms=1&timeout_ms=60000&lines=2 | {"wait":"done","lines":2,"characters":94}
          /multi-aggregate?branches=50&wait_ms=20 | {"branches":50,"total_waited_ms":1000}
          """)
  void everyModelSaysTheSame(String target, String body) throws Exception {
    String path = target.replaceFirst("\\?.*", "");
    assumeTrue(routes().stream().anyMatch(route -> route.path().equals(path)), "no such route");
    RawAnswer answer = get(shared(), target);
    assertThat(answer.body()).isEqualTo(body);
    assertThat(answer.status()).isEqualTo(200);
  }

  @Order(SHARED)
  @Test
  void itDeclaresTheRoutesThatItServes() throws Exception {
    Set<Route> routes = routes();
    RunningServer server = shared();
    assertThat(management(server).get("/identity"))
        .contains(
            routes.stream()
                .map(route -> '"' + route.path() + '"')
                .sorted()
                .collect(Collectors.joining(",", "\"routes\":[", "]")));
    for (Route route : Route.WITH_DEMONSTRATIONS) {
      // What is refused does no work.
      assertThat(get(server, route.path() + "?unknown=1").status())
          .as(route.path())
          .isEqualTo(routes.contains(route) ? 400 : 404);
    }
  }

  @Order(SHARED)
  @Test
  void branchesRunAtTheSameTime() throws Exception {
    assumeDemonstrations();
    RunningServer server = shared();
    long begun = System.nanoTime();
    assertThat(get(server, "/multi-aggregate?branches=100&wait_ms=200").status()).isEqualTo(200);
    // One after the other they would take no less.
    assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(20));
  }

  @Test
  void losersAreCancelledAndSeenToBe() throws Exception {
    assumeDemonstrations();
    RunningServer server = start();
    var _ = get(server, "/first-success?fast_ms=1&slow_ms=60000");
    var _ = get(server, "/aggregate-with-fallback?timeout_ms=1&wait_ms=60000");
    for (String route : List.of("/first-success", "/aggregate-with-fallback")) {
      String cancelled = "lab_branches_total{outcome=\"cancelled\",route=\"" + route + "\"}";
      await(() -> management(server).metric(cancelled) == 1);
    }
  }

  @Order(SHARED)
  @Test
  void metricsAreARouteToo() throws Exception {
    RawAnswer answer = get(shared(), "/metrics");
    // The space means nothing, and some servers write the header anew.
    assertThat(answer.headers().get("Content-Type")).matches("text/plain; ?version=0\\.0\\.4;.*");
    assertThat(answer.body()).contains("lab_server_info{");
  }

  @Order(SHARED)
  @Test
  void healthAnswersOnBothPorts() throws Exception {
    RunningServer server = shared();
    String up = "{\"status\":\"up\",\"model\":\"%s\"}".formatted(model().name());
    assertThat(get(server, "/health").body()).isEqualTo(up);
    assertThat(management(server).get("/health")).isEqualTo(up);
  }

  @Order(SHARED)
  @Test
  void whatIsNoRouteIs404() throws Exception {
    RawAnswer answer = get(shared(), "/no/such");
    assertThat(answer.status()).isEqualTo(404);
    assertThat(answer.body()).contains("no such route").contains("/downstream");
    assertThat(answer.headers()).containsEntry("Lab-Model", model().name());
  }

  @Order(SHARED)
  @ParameterizedTest
  @ValueSource(strings = {"POST", "PUT", "DELETE", "HEAD"})
  void anyMethodButGetIs405(String method) throws Exception {
    try (RawClient client = new RawClient(shared().httpPort())) {
      RawAnswer answer = client.request(method, "/", "Content-Length: 0").read(method);
      assertThat(answer.status()).isEqualTo(405);
      assertThat(answer.headers()).containsEntry("Allow", "GET");
    }
  }

  @Order(SHARED)
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          /?wait_ms=-1            | wait_ms must be a whole number from 0 to 60000, got '-1'
          /?wait_ms=60001         | wait_ms must be a whole number from 0 to 60000, got '60001'
          /?wait_ms=abc           | wait_ms must be a whole number from 0 to 60000, got 'abc'
          /?wait_ms=              | wait_ms must be a whole number from 0 to 60000, got ''
          /?wait_ms=1&wait_ms=2   | wait_ms is given twice
          /?other=1               | / takes [wait_ms], not 'other'
          /compute?limit=1000001  | limit must be a whole number from 2 to 1000000, got '1000001'
          /file?lines=0           | lines must be a whole number from 1 to 100000, got '0'
          /block?wait_ms=9e1      | wait_ms must be a whole number from 0 to 60000, got '9e1'
          /health?wait_ms=1       | /health takes [], not 'wait_ms'
          """)
  void aBadQueryIs400AndSaysWhy(String target, String reason) throws Exception {
    RawAnswer answer = get(shared(), target);
    assertThat(answer.status()).isEqualTo(400);
    assertThat(answer.body()).isEqualTo("{\"error\":\"%s\"}".formatted(reason));
  }

  // --- the downstream fails -------------------------------------------------------------------

  @Test
  void aSilentDownstreamIs504() throws Exception {
    downstream.behave(Behaviour.SILENT);
    RunningServer server = start("LAB_DOWNSTREAM_TIMEOUT_MS", "100");
    assertThat(get(server, "/downstream").status()).isEqualTo(504);
    assertThat(management(server).metric("lab_downstream_calls_total{outcome=\"timeout\"}"))
        .isEqualTo(1);
  }

  @ParameterizedTest
  @ValueSource(strings = {"BREAK", "BREAK_IN_BODY", "FAIL"})
  void aBrokenDownstreamIs502(Behaviour behaviour) throws Exception {
    downstream.behave(behaviour);
    RunningServer server = start();
    assertThat(get(server, "/downstream").status()).isEqualTo(502);
    assertThat(management(server).metric("lab_downstream_calls_total{outcome=\"error\"}"))
        .isEqualTo(1);
  }

  @Test
  void aRefusingDownstreamIs502() throws Exception {
    // Bound, so that nobody else takes the port, and not listening, so that it refuses.
    try (Socket bound = new Socket()) {
      bound.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      RunningServer server =
          start("LAB_DOWNSTREAM_URL", "http://127.0.0.1:" + bound.getLocalPort() + "/");
      assertThat(get(server, "/downstream").status()).isEqualTo(502);
      assertThat(management(server).metric("lab_downstream_calls_total{outcome=\"refused\"}"))
          .isEqualTo(1);
    }
  }

  @Test
  void waitingForADownstreamConnectionCountsAsTimeout() throws Exception {
    downstream.behave(Behaviour.HOLD);
    RunningServer server = startHolding("LAB_DOWNSTREAM_CONNECTIONS", "1");
    assertThat(mbean("DownstreamConnections", "Cap")).isEqualTo(1);
    try (RawClient holder = new RawClient(server.httpPort());
        RawClient late = new RawClient(server.httpPort());
        RawClient next = new RawClient(server.httpPort())) {
      holder.request("GET", "/downstream");
      awaitLeased(1);
      setDownstreamTimeout(server, "100");
      assertThat(late.get("/downstream").status()).isEqualTo(504);
      Management management = management(server);
      assertThat(management.metric("lab_downstream_calls_total{outcome=\"timeout\"}")).isEqualTo(1);
      assertThat(management.metric("lab_downstream_call_seconds_count{phase=\"pending\"}"))
          .isEqualTo(1);
      // It waited, and called nobody.
      assertThat(management.metric("lab_downstream_call_seconds_count{phase=\"call\"}")).isZero();
      setDownstreamTimeout(server, HELD_MS);
      next.request("GET", "/downstream");
      awaitPending(1);
      downstream.answerHeld(2);
      assertThat(holder.read().status()).isEqualTo(200);
      assertThat(next.read().status()).isEqualTo(200);
    }
    awaitLeased(0);
  }

  @Test
  void downstreamConnectionsAreUsedAgain() throws Exception {
    // Where there are loops, each has connections of its own.
    RunningServer server = start("LAB_LOOPS", "1");
    for (int i = 0; i < 5; i++) {
      assertThat(get(server, "/downstream").status()).isEqualTo(200);
    }
    assertThat(downstream.connections()).isEqualTo(1);
  }

  @Test
  void aDownstreamConnectionThatDiedWhileIdleIsReplaced() throws Exception {
    boolean retries = !has(Trait.ASKS_ONCE);
    downstream.behave(retries ? Behaviour.ANSWER_THEN_CLOSE : Behaviour.ANSWER_THEN_END);
    RunningServer server = start();
    for (int i = 1; i <= 3; i++) {
      if (retries) {
        assertThat(get(server, "/downstream").status()).isEqualTo(200);
      } else {
        // It may be asked between the end, which the downstream has seen, and the moment when it
        // forgets that connection.
        await(() -> statusOf(server, "/downstream") == 200);
        int answered = i;
        await(() -> downstream.ended() == answered);
      }
    }
    assertThat(management(server).metric("lab_downstream_calls_total{outcome=\"ok\"}"))
        .isEqualTo(3);
  }

  /** It costs a connection set up, which nothing else shows. */
  @Test
  void aCallThatIsMadeOnceMoreIsCounted() throws Exception {
    downstream.behave(Behaviour.ANSWER_ONCE);
    RunningServer server = start("LAB_LOOPS", "1");
    List<Integer> statuses = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      statuses.add(get(server, "/downstream").status());
    }
    String metric = "lab_downstream_retries_total";
    Management management = management(server);
    String counted =
        management.get("/metrics").contains(metric + " ")
            ? "%.0f counted".formatted(management.metric(metric))
            : "no metric";
    Deviations.of(model().name())
        .verify(
            "aCallThatIsMadeOnceMoreIsCounted", statuses + " " + counted, "[200, 200] 1 counted");
  }

  /** Who copied all of the body for each of its parts would copy half a terabyte. */
  @Test
  void aBodyInTinyChunksCostsWhatABodyCosts() throws Exception {
    downstream.behave(Behaviour.ANSWER_IN_TINY_CHUNKS);
    RunningServer server = startHolding("LAB_LOOPS", "1");
    try (RawClient waiting = new RawClient(server.httpPort())) {
      assertThat(get(server, "/health").status()).isEqualTo(200);
      long before = allocatedBytes(server);
      waiting.request("GET", "/downstream");
      awaitInFlight(server, 1);
      assertThat(get(server, "/health").status()).isEqualTo(200);
      downstream.answerHeld(1);
      RawAnswer answer = waiting.read();
      boolean isWhole = answer.body().equals(FakeDownstream.LONG_BODY);
      Deviations.of(model().name())
          .verify(
              "aBodyInTinyChunksCostsWhatABodyCosts",
              answer.status() + (isWhole ? " whole" : ""),
              "200 whole");
      assertThat(allocatedBytes(server) - before).isLessThan(64L << 30);
    }
  }

  // --- the protocol ---------------------------------------------------------------------------

  @Order(SHARED)
  @Test
  void aConnectionTakesManyRequests() throws Exception {
    // More than the 100 after which Tomcat would close it by default.
    try (RawClient client = new RawClient(shared().httpPort())) {
      for (int i = 0; i < 250; i++) {
        assertThat(client.get("/health").status()).isEqualTo(200);
      }
    }
  }

  @Order(SHARED)
  @Test
  void pipelinedRequestsAreAnsweredInOrder() throws Exception {
    try (RawClient client = new RawClient(shared().httpPort())) {
      String get = "GET %s HTTP/1.1\r\nHost: lab\r\n\r\n";
      client.send(
          get.formatted("/?wait_ms=50") + get.formatted("/health") + get.formatted("/none"));
      assertThat(client.read().body()).contains("hello");
      assertThat(client.read().body()).contains("up");
      assertThat(client.read().status()).isEqualTo(404);
    }
  }

  @Order(SHARED)
  @Test
  void connectionCloseIsHonoured() throws Exception {
    try (RawClient client = new RawClient(shared().httpPort())) {
      client.request("GET", "/health", "Connection: close");
      assertThat(client.read().status()).isEqualTo(200);
      assertThat(client.isClosedByServer()).isTrue();
    }
  }

  @Order(SHARED)
  @Test
  void aSlowRequestHoldsUpNobodyElse() throws Exception {
    RunningServer server = shared();
    try (RawClient slow = new RawClient(server.httpPort());
        RawClient other = new RawClient(server.httpPort())) {
      slow.send("GET /health HT");
      assertThat(other.get("/health").status()).isEqualTo(200);
      slow.send("TP/1.1\r\nHost: lab\r\n");
      assertThat(other.get("/health").status()).isEqualTo(200);
      slow.send("\r\n");
      assertThat(slow.read().status()).isEqualTo(200);
    }
  }

  @Order(SHARED)
  @ParameterizedTest
  @ValueSource(
      strings = {
        "NONSENSE\r\n\r\n",
        "GET /health\r\n\r\n",
        "GET /health HTTP/1.1\r\nContent-Length: many\r\n\r\n"
      })
  void malformedInputIs400AndEndsTheConnection(String text) throws Exception {
    assumeFalse(
        has(Trait.SPEAKS_HTTP_09) && text.startsWith("GET /health\r"), "HTTP/0.9 has no status");
    RunningServer server = shared();
    try (RawClient client = new RawClient(server.httpPort())) {
      assertThat(client.send(text).read().status()).isEqualTo(400);
      assertThat(client.isClosedByServer()).isTrue();
    }
    assertThat(get(server, "/health").status()).isEqualTo(200);
  }

  // --- what can be seen -----------------------------------------------------------------------

  @Test
  void metricsSpeakTheLabsWords() throws Exception {
    RunningServer server = start();
    var _ = get(server, "/downstream");
    var _ = get(server, "/downstream");
    var _ = get(server, "/no/such");
    Management management = management(server);
    // A request ends when its answer is written, which may be after it was read.
    awaitInFlight(server, "none", 0);
    awaitInFlight(server, "/downstream", 0);
    String metrics = management.get("/metrics");
    List<String> expected = new ArrayList<>();
    for (String phase : List.of("queue", "service", "total")) {
      expected.add(
          "lab_http_request_seconds_count{phase=\"%s\",route=\"/downstream\"} 2".formatted(phase));
    }
    expected.add("lab_http_requests_total{outcome=\"client_error\",route=\"none\"} 1");
    expected.add("lab_http_requests_total{outcome=\"ok\",route=\"/downstream\"} 2");
    expected.add("lab_http_requests_in_flight{route=\"/downstream\"} 0");
    expected.add("lab_downstream_calls_total{outcome=\"ok\"} 2");
    expected.add("lab_downstream_call_seconds_count{phase=\"pending\"} 2");
    expected.add("lab_downstream_call_seconds_count{phase=\"call\"} 2");
    expected.add("lab_kernel_listen_overflows_total ");
    expected.add("lab_kernel_listen_drops_total ");
    expected.add("lab_kernel_accept_queue_length 0");
    expected.add("lab_kernel_tcp_retransmits_total ");
    expected.add("lab_kernel_tcp_syn_retransmits_total ");
    expected.add("lab_kernel_tcp_sockets_in_use ");
    expected.add("lab_kernel_tcp_time_wait ");
    expected.add("lab_local_ports ");
    expected.add("lab_gc_cpu_seconds_total ");
    expected.add("lab_jit_cpu_seconds_total ");
    expected.add("lab_jit_wait_seconds_total ");
    expected.add("lab_server_info{");
    expected.add("lab_server_start_time_seconds ");
    String buckets = "lab_http_request_seconds_bucket{phase=\"total\",route=\"/downstream\",le=";
    expected.add(buckets + "\"0.205\"} ");
    expected.add(buckets + "\"60.0\"} 2");
    assertThat(metrics).contains(expected);
    assertThat(metrics.contains("lab_downstream_unread_seconds_count 2"))
        .isEqualTo(has(Trait.TELLS_UNREAD));
    if (threadName().startsWith("vt-")) {
      await(() -> management.metric("lab_virtual_thread_lag_seconds_count") > 0);
    }
    boolean hasFronts = !management.get("/settings").contains("\"fronts\":null");
    if (hasFronts && Files.exists(Path.of("/proc/self/schedstat"))) {
      await(() -> management.metric("lab_front_cpu_seconds_total{front=\"front-1\"}") > 0);
    }
  }

  @Test
  void aRequestInFlightIsSeen() throws Exception {
    downstream.behave(Behaviour.HOLD);
    RunningServer server = startHolding();
    try (RawClient client = new RawClient(server.httpPort())) {
      client.request("GET", "/downstream");
      awaitInFlight(server, 1);
      downstream.answerHeld(1);
      assertThat(client.read().status()).isEqualTo(200);
      awaitInFlight(server, 0);
    }
  }

  /** What came while it worked became ready in the middle of that work, as far as it can tell. */
  @Test
  void anAnswerThatTheLoopIsTooBusyToReadIsSeen() throws Exception {
    assumeTrue(has(Trait.TELLS_UNREAD), "no event loop of the lab's reads the answers");
    RunningServer server = startHolding("LAB_LOOPS", "1", "LAB_BLOCK_THE_LOOP", "true");
    Management management = management(server);
    try (RawClient waiting = new RawClient(server.httpPort());
        RawClient blocking = new RawClient(server.httpPort())) {
      // Leaves a connection to the downstream, so that the next call asks at once.
      assertThat(waiting.get("/downstream").status()).isEqualTo(200);
      downstream.behave(Behaviour.HOLD);
      double unread = 0;
      int busyMs = 500;
      // On a slow machine the loop is done before the answer comes: then it has to work for longer.
      for (int begun = 1; unread < 0.45 * busyMs / 1000; begun++) {
        busyMs *= 2;
        assertThat(busyMs).isLessThan((int) PATIENCE.toMillis());
        double before = management.metric("lab_downstream_unread_seconds_sum");
        waiting.request("GET", "/downstream");
        awaitInFlight(server, 1);
        blocking.request("GET", "/?wait_ms=" + busyMs);
        int blocked = begun;
        await(
            () ->
                management.metric("lab_http_requests_in_flight{route=\"/\"}")
                        + management.metric("lab_http_requests_total{outcome=\"ok\",route=\"/\"}")
                    >= blocked);
        downstream.answerHeld(1);
        assertThat(waiting.read().status()).isEqualTo(200);
        assertThat(blocking.read().status()).isEqualTo(200);
        awaitInFlight(server, 0);
        unread = management.metric("lab_downstream_unread_seconds_sum") - before;
      }
    }
    assertThat(management.metric("lab_downstream_unread_seconds_sum"))
        .isLessThan(management.metric("lab_downstream_call_seconds_sum{phase=\"call\"}"));
  }

  @Test
  void anAnswerThatNobodyCanReadIsNoneThatWasGiven() throws Exception {
    downstream.behave(Behaviour.HOLD);
    RunningServer server = startHolding();
    try (RawClient gone = new RawClient(server.httpPort())) {
      gone.request("GET", "/downstream");
      awaitInFlight(server, 1);
      gone.reset();
    }
    downstream.answerHeld(1);
    awaitInFlight(server, 0);
    assertThat(
            management(server)
                .metric("lab_http_requests_total{outcome=\"aborted\",route=\"/downstream\"}"))
        .isEqualTo(1);
  }

  /** An exception walks the stack for its trace, which costs most where a framework's is deep. */
  @Test
  void theLabsOwnCodeMakesNoExceptionForARequestThatSucceeds() throws Exception {
    RunningServer server = start();
    int requests = 20;
    try (RawClient client = new RawClient(server.httpPort())) {
      assertThat(client.get("/downstream").status()).isEqualTo(200);
      List<String> made =
          ExceptionsMade.byTheLab(
              server,
              () -> {
                for (int i = 0; i < requests; i++) {
                  assertThat(client.get("/downstream").status()).isEqualTo(200);
                }
                return null;
              });
      assertThat(made).hasSizeLessThan(requests / 2);
    }
  }

  @Test
  void theWaitForAWorkerIsAPhaseOfItsOwn() throws Exception {
    assumeWorkerPool();
    downstream.behave(Behaviour.HOLD);
    RunningServer server = startHolding("LAB_POOL_SIZE", "1");
    try (RawClient working = new RawClient(server.httpPort());
        RawClient queued = new RawClient(server.httpPort())) {
      working.request("GET", "/downstream");
      await(() -> mbean("WorkerPool", "Active") == 1);
      queued.request("GET", "/?wait_ms=300");
      await(() -> mbean("WorkerPool", "QueueDepth") == 1);
      downstream.answerHeld(1);
      assertThat(working.read().status()).isEqualTo(200);
      assertThat(queued.read().status()).isEqualTo(200);
    }
    Management management = management(server);
    awaitInFlight(server, "/", 0);
    double queue = management.metric("lab_http_request_seconds_sum{phase=\"queue\",route=\"/\"}");
    double service =
        management.metric("lab_http_request_seconds_sum{phase=\"service\",route=\"/\"}");
    double total = management.metric("lab_http_request_seconds_sum{phase=\"total\",route=\"/\"}");
    assertThat(queue).isPositive();
    assertThat(service).isGreaterThanOrEqualTo(0.3);
    assertThat(queue + service).isEqualTo(total, within(1e-6));
  }

  /**
   * The queue is neither hidden nor made up where one thread, loop or carrier works for twenty
   * clients. A loop's estimate may be off by half a request, and by a round as clients come and go:
   * each asks often. On a busy machine they wait for a CPU, too: the median of three tries counts.
   */
  @Test
  void theQueueIsWhatClientsWaitedIn() throws Exception {
    String rule = "theQueueIsWhatClientsWaitedIn";
    assumeTrue(has(Trait.LIMITS_CLIENTS), "the server reads requests beside their phases");
    RunningServer server = start("LAB_POOL_SIZE", "1", "LAB_LOOPS", "1");
    Management management = management(server);
    String sum = "lab_http_request_seconds_sum{phase=\"%s\",route=\"/compute\"}";
    String carriers = management.get("/settings").replaceFirst(".*_parallelism\":(\\d+).*", "$1");
    List<Double> explained = new ArrayList<>();
    List<Double> queued = new ArrayList<>();
    try {
      setCarriers(server, "1");
      for (int i = 0; i < 3; i++) {
        double queue = -management.metric(sum.formatted("queue"));
        double service = -management.metric(sum.formatted("service"));
        double waited = secondsWaited(server, 20, "/compute?limit=100000");
        awaitInFlight(server, "/compute", 0);
        queue += management.metric(sum.formatted("queue"));
        service += management.metric(sum.formatted("service"));
        explained.add((queue + service) / waited);
        queued.add(queue / (queue + service));
      }
    } finally {
      setCarriers(server, carriers);
    }
    String happened = median(queued) > 0.5 ? "in the queue" : "in service";
    if (median(explained) < 0.9) {
      happened = "nowhere";
    } else if (median(explained) > 1.1) {
      happened = "longer than that";
    }
    Deviations.of(model().name()).verify(rule, happened, "in the queue");
  }

  private static double median(List<Double> values) {
    return values.stream().sorted().skip(values.size() / 2).findFirst().orElseThrow();
  }

  /** How long so many clients wait for twelve answers each, taken together. */
  private static double secondsWaited(RunningServer server, int clients, String target)
      throws Exception {
    Callable<Long> client =
        () -> {
          try (RawClient own = new RawClient(server.httpPort())) {
            assertThat(own.get("/health").status()).isEqualTo(200);
            long begun = System.nanoTime();
            for (int i = 0; i < 12; i++) {
              assertThat(own.get(target).status()).isEqualTo(200);
            }
            return System.nanoTime() - begun;
          }
        };
    long nanos = 0;
    // Not virtual: they would wait for the server's carrier.
    try (ExecutorService threads = Executors.newFixedThreadPool(clients)) {
      for (Future<Long> each : threads.invokeAll(Collections.nCopies(clients, client))) {
        nanos += each.get();
      }
    }
    return nanos / 1e9;
  }

  @Test
  void settingsAreReadBack() throws Exception {
    RunningServer server = start("LAB_BACKLOG", "1234", "LAB_POOL_SIZE", "7");
    String settings = management(server).get("/settings");
    // No framework's server has a limit on those.
    String mostIdle = settings.contains("\"framework\":null") ? "20000" : "null";
    assertThat(settings)
        .startsWith("{\"model\":\"%s\",\"settings\":{".formatted(model().name()))
        .contains("\"backlog\":1234")
        .contains("\"tcp_nodelay\":true")
        .contains("\"keep_alive_max_idle\":" + mostIdle)
        .contains("\"downstream_url\":\"" + downstream.url())
        .contains("\"pool_size\":" + (has(Trait.WORKER_POOL) ? "7," : "null,"));
    settings()
        .forEach(
            (name, word) ->
                assertThat(settings)
                    .contains(
                        "\"%s\":\"%s\""
                            .formatted(name.substring(4).toLowerCase(Locale.ROOT), word)));
  }

  @Order(SHARED)
  @Test
  void identityTellsWhoThisIs() throws Exception {
    RunningServer server = shared();
    RuntimeMXBean jvm = ManagementFactory.getPlatformMXBean(server.mbeans(), RuntimeMXBean.class);
    assertThat(management(server).get("/identity"))
        .startsWith("{\"model\":\"%s\",\"version\":".formatted(model().name()))
        .contains("\"pid\":" + server.pid())
        .contains("\"start_time_ms\":" + jvm.getStartTime())
        .contains("\"jvm_flags\":[")
        .contains("\"gc\":[");
  }

  @Order(SHARED)
  @Test
  void withoutTheTokenTheManagementPortTellsHealthAndMetricsOnly() throws Exception {
    Management management = management(shared());
    String before = management.get("/settings");
    for (String token : List.of("", "token of another", Management.tokenSums(model().name()))) {
      for (String call :
          List.of(
              "GET /identity",
              "GET /settings",
              "PATCH /settings",
              "GET /time",
              "GET /round-trip",
              "POST /gc",
              "POST /restart",
              "POST /recording/cpu",
              "POST /recording/end",
              "POST /health",
              "GET /metrics/",
              "GET /none")) {
        String[] words = call.split(" ", 2);
        var answer = management.callWith(token, words[0], words[1], "{\"pool_size\":1}");
        assertThat(answer.statusCode()).as(call).isEqualTo(403);
        assertThat(answer.body()).contains("needs the server's token");
      }
      for (String path : List.of("/health", "/metrics")) {
        assertThat(management.callWith(token, "GET", path, "").statusCode()).isEqualTo(200);
      }
    }
    assertThat(management.get("/settings")).isEqualTo(before);
  }

  @Order(SHARED)
  @Test
  void theClockIsThatOfItsMachine() throws Exception {
    Management management = management(shared());
    long before = System.currentTimeMillis();
    long told = Long.parseLong(management.get("/time").replaceAll("\\D", ""));
    assertThat(told).isBetween(before, System.currentTimeMillis());
    // Nobody listens where this server calls.
    assertThat(management.call("GET", "/round-trip", "").statusCode()).isEqualTo(502);
  }

  @Test
  void theRoundTripToTheDownstreamIsTold() throws Exception {
    assertThat(management(start()).get("/round-trip")).matches("\\{\"microseconds\":\\d+}");
  }

  @Order(SHARED)
  @Test
  void garbageIsCollectedWhenToldAndWhatIsLiveIsSaid() throws Exception {
    var answer = management(shared()).call("POST", "/gc", "");
    assertThat(answer.statusCode()).isEqualTo(200);
    assertThat(answer.body()).matches("\\{\"heap_used_bytes\":[1-9]\\d{5,}}");
  }

  /** What a recording tells is tested where it is made. */
  @Order(SHARED)
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          cpu   | {"seconds":0}  | 400 | seconds must be a whole number from 1
          alloc | {}             | 400 | seconds must be a whole number from 1
          lock  | {"seconds":1x} | 400 | the body must be an object of whole numbers
          end   | {}             | 409 | nothing was recorded
          wall  | {}             | 404 | /recording/cpu /recording/alloc /recording/lock
          """)
  void aRecordingThatCannotBeIsRefused(String what, String body, int status, String reason)
      throws Exception {
    var answer = management(shared()).call("POST", "/recording/" + what, body);
    assertThat(answer.statusCode()).isEqualTo(status);
    assertThat(answer.body()).contains(reason);
  }

  /**
   * The rest of this suite is not run again: a twin shares its code with the levelled lane, but not
   * its limits.
   */
  @Order(SHARED + 1)
  @Test
  void asItShipsAFrameworkAnswersAndReadsBackWhatItBrings() throws Exception {
    assumeFalse(asShipped().isEmpty(), "no framework");
    assertThat(management(shared()).get("/settings")).doesNotContain(asShipped());
    RunningServer server = start("FRAMEWORK", "shipped");
    assertThat(get(server, "/downstream").body()).isEqualTo(FakeDownstream.BODY);
    assertThat(management(server).get("/settings"))
        .startsWith("{\"model\":\"%s-shipped\",".formatted(model().name()))
        .contains(asShipped());
  }

  /** It would answer under the name of a server that there is not. */
  @Order(SHARED + 1)
  @Test
  void asItShipsIsRefusedWithoutAFramework() {
    assumeTrue(asShipped().isEmpty(), "a framework");
    assertThatThrownBy(() -> start("FRAMEWORK", "shipped"))
        .isInstanceOf(BadValueException.class)
        .hasMessage("FRAMEWORK=shipped is for a framework's server; this has none");
  }

  // --- knobs ----------------------------------------------------------------------------------

  @Test
  void knobsTurnWhileTheServerRuns() throws Exception {
    downstream.behave(Behaviour.SILENT);
    RunningServer server = start();
    var answer =
        management(server)
            .call(
                "PATCH",
                "/settings",
                "{\"downstream_timeout_ms\": 50, \"downstream_connections\": 3}");
    assertThat(answer.statusCode()).isEqualTo(200);
    assertThat(answer.body())
        .contains("\"downstream_timeout_ms\":50")
        .contains("\"downstream_connections\":3");
    assertThat(get(server, "/downstream").status()).isEqualTo(504);
    assertThat(mbean("DownstreamConnections", "Cap")).isEqualTo(3);
  }

  /** What it then tells is tested where it is made. */
  @Test
  void locksAreWatchedWhileToldTo() throws Exception {
    RunningServer server = start();
    for (int ms : new int[] {50, 0}) {
      var answer =
          management(server).call("PATCH", "/settings", "{\"lock_watch_ms\":%d}".formatted(ms));
      assertThat(answer.statusCode()).isEqualTo(200);
      assertThat(answer.body()).contains("\"lock_watch_ms\":%d".formatted(ms));
      assertThat(mbean("LockWatch", "ThresholdMs")).isEqualTo(ms);
      assertThat(get(server, "/downstream").status()).isEqualTo(200);
    }
  }

  @Test
  void thePoolGrowsAndShrinks() throws Exception {
    assumeWorkerPool();
    RunningServer server = start("LAB_POOL_SIZE", "2");
    for (int size : new int[] {5, 1}) {
      var answer =
          management(server).call("PATCH", "/settings", "{\"pool_size\":%d}".formatted(size));
      assertThat(answer.body()).contains("\"pool_size\":%d,".formatted(size));
      assertThat(mbean("WorkerPool", "Size")).isEqualTo(size);
      assertThat(get(server, "/health").status()).isEqualTo(200);
    }
  }

  @Order(SHARED)
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          {"downstream_timeout_ms":0} | downstream_timeout_ms must be a whole number from 1
          {"backlog":5}               | cannot be changed
          {"a":1,"a":2}               | given twice
          {"downstream_timeout_ms":x} | the body must be an object of whole numbers
          nothing                     | the body must be an object of whole numbers
          """)
  void aBadKnobIs400AndChangesNothing(String body, String reason) throws Exception {
    RunningServer server = shared();
    String before = management(server).get("/settings");
    var answer = management(server).call("PATCH", "/settings", body);
    assertThat(answer.statusCode()).isEqualTo(400);
    assertThat(answer.body()).contains(reason);
    assertThat(management(server).get("/settings")).isEqualTo(before);
  }

  // --- clients that do nothing ----------------------------------------------------------------

  /**
   * One that has nothing to say, and one that never says all, however busily. Who waits for the
   * server does not keep it waiting.
   */
  @Test
  void aClientThatKeepsTheServerWaitingIsClosed() throws Exception {
    String rule = "aClientThatKeepsTheServerWaitingIsClosed";
    Deviations deviations = Deviations.of(model().name());
    RunningServer server = start(launcherOfItsOwn(), "LAB_KEEP_ALIVE_TIMEOUT_S", "2");
    // No one is connected for long before it asks.
    try (RawClient idle = new RawClient(server.httpPort());
        RawClient waiting = new RawClient(server.httpPort());
        RawClient slow = new RawClient(server.httpPort())) {
      assertThat(idle.get("/health").status()).isEqualTo(200);
      waiting.request("GET", "/?wait_ms=4000");
      slow.send("GET /health HTTP/1.1\r\nHost: lab\r\n");
      // Whoever lets it go on is asked no longer than twice the time.
      boolean staysOpen = deviations.byRule().getOrDefault(rule, "").contains("slow open");
      long atMost = staysOpen ? 4 : PATIENCE.toSeconds();
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(atMost);
      boolean open = true;
      while (open && System.nanoTime() < end) {
        Thread.sleep(50);
        open = slow.isTaken("A: b\r\n");
      }
      assertThat(idle.isClosedByServer()).isTrue();
      String happened = "slow " + (open ? "open" : "closed") + ", waiting " + waiting.next();
      deviations.verify(rule, happened, "slow closed, waiting 200");
    }
  }

  /** It asks on and on and never reads: idle it is not, but it is its turn. */
  @Test
  void aClientThatDoesNotReadIsClosedInTheEnd() throws Exception {
    assumeTrue(has(Trait.LIMITS_CLIENTS), "a framework's server");
    RunningServer server = start("LAB_KEEP_ALIVE_TIMEOUT_S", "1");
    try (RawClient client = new RawClient(server.httpPort(), 4096)) {
      Thread asking =
          Thread.ofVirtual()
              .start(() -> client.sendUntilClosed("GET /metrics HTTP/1.1\r\nHost: lab\r\n\r\n"));
      assertThat(asking.join(PATIENCE)).isTrue();
    }
  }

  @Test
  void beyondTheMostIdleAConnectionIsClosedAfterItsLastAnswer() throws Exception {
    assumeTrue(has(Trait.LIMITS_CLIENTS), "a framework's server");
    RunningServer server = start("LAB_KEEP_ALIVE_MAX_IDLE", "1");
    try (RawClient idle = new RawClient(server.httpPort())) {
      assertThat(idle.get("/health").headers()).doesNotContainKey("Connection");
      // It counts as idle some time after it has read its answer.
      await(() -> isToldOfClose(server));
      try (RawClient other = new RawClient(server.httpPort())) {
        // With another request at hand it is not idle: only the last answer closes.
        // A blank line is none.
        other.send("GET /health HTTP/1.1\r\nHost: lab\r\n\r\n".repeat(2) + "\r\n");
        assertThat(other.read().headers()).doesNotContainKey("Connection");
        assertThat(other.read().headers()).containsEntry("Connection", "close");
        assertThat(other.isClosedByServer()).isTrue();
      }
      assertThat(idle.get("/health").status()).isEqualTo(200);
    }
  }

  // --- saturation and the end -----------------------------------------------------------------

  @Test
  void aFullQueueAnswers503() throws Exception {
    assumeWorkerPool();
    downstream.behave(Behaviour.HOLD);
    RunningServer server = startHolding("LAB_POOL_SIZE", "1", "LAB_QUEUE_BOUND", "1");
    try (RawClient running = new RawClient(server.httpPort());
        RawClient queued = new RawClient(server.httpPort());
        RawClient rejected = new RawClient(server.httpPort())) {
      running.request("GET", "/downstream");
      await(() -> mbean("WorkerPool", "Active") == 1);
      queued.request("GET", "/health");
      await(() -> mbean("WorkerPool", "QueueDepth") == 1);
      assertThat(rejected.get("/health").status()).isEqualTo(503);
      downstream.answerHeld(1);
      assertThat(running.read().status()).isEqualTo(200);
      assertThat(queued.read().status()).isEqualTo(200);
      if (has(Trait.CLOSES_AFTER_503)) {
        assertThat(rejected.isClosedByServer()).isTrue();
      } else {
        assertThat(rejected.get("/health").status()).isEqualTo(200);
      }
    }
    String ended = "lab_http_requests_total{outcome=\"%s\",route=\"/health\"}";
    await(() -> management(server).metric(ended.formatted("rejected")) == 1);
    // The refused one waited for nobody, and was worked on by nobody.
    int ok = has(Trait.CLOSES_AFTER_503) ? 1 : 2;
    await(() -> management(server).metric(ended.formatted("ok")) == ok);
    assertThat(
            management(server)
                .metric("lab_http_request_seconds_count{phase=\"queue\",route=\"/health\"}"))
        .isEqualTo(ok);
  }

  /** Who has no place yet waits in the kernel's queue, and no restart is needed afterwards. */
  @Test
  void descriptorsRunOutAndComeBack() throws Exception {
    Class<?> main = main();
    assumeTrue(main != null, "a framework's server");
    int descriptors = 200;
    RunningServer server =
        start(
            new InAnotherJvm(requireNonNull(main), List.of("-XX:-MaxFDLimit"), descriptors),
            "LAB_KEEP_ALIVE_TIMEOUT_S",
            "1",
            "LAB_DOWNSTREAM_TIMEOUT_MS",
            HELD_MS);
    downstream.behave(Behaviour.HOLD);
    // Here a class is a file, and needs a descriptor: those of a look at idle clients, too.
    try (RawClient idle = new RawClient(server.httpPort())) {
      askBehindAHeldCall(server, idle);
      readBoth(idle);
      assertThat(idle.isClosedByServer()).isTrue();
    }
    List<RawClient> crowd = new ArrayList<>();
    try (RawClient first = new RawClient(server.httpPort())) {
      askBehindAHeldCall(server, first);
      for (int i = 0; i < 2 * descriptors; i++) {
        crowd.add(new RawClient(server.httpPort()));
      }
      readBoth(first);
    } finally {
      for (RawClient each : crowd) {
        each.close();
      }
    }
    assertThat(get(server, "/health").status()).isEqualTo(200);
  }

  private static void askBehindAHeldCall(RunningServer server, RawClient client) throws Exception {
    client.request("GET", "/downstream").request("GET", "/health");
    awaitInFlight(server, 1);
  }

  private void readBoth(RawClient client) throws IOException {
    downstream.answerHeld(1);
    assertThat(client.read().status()).isEqualTo(200);
    assertThat(client.read().status()).isEqualTo(200);
  }

  @Test
  void restartIsPromisedThenDone() throws Exception {
    RunningServer server = start();
    assertThat(management(server).call("POST", "/restart", "").statusCode()).isEqualTo(202);
    assertThat(server.awaitRestart(PATIENCE)).isTrue();
  }

  /** What is pipelined behind them is answered or not, but not by half. */
  @Test
  void stoppingLetsRequestsEndAndFreesThePort() throws Exception {
    downstream.behave(Behaviour.HOLD);
    RunningServer server = startHolding();
    int port = server.httpPort();
    try (RawClient client = new RawClient(port)) {
      client.request("GET", "/downstream").request("GET", "/health");
      awaitInFlight(server, 1);
      Thread stopping = Thread.ofVirtual().start(this::stopServer);
      await(() -> isStopping(server));
      downstream.answerHeld(1);
      stopping.join();
      assertThat(client.rest()).isIn("200 closed", "200 200 closed");
    }
    started = null;
    assertThatThrownBy(() -> new RawClient(port)).isInstanceOf(ConnectException.class);
  }

  @Test
  void whatHangsBeyondTheGraceIsCutAndWhatIsBehindItToo() throws Exception {
    String rule = "whatHangsBeyondTheGraceIsCutAndWhatIsBehindItToo";
    assumeTrue(launcher() instanceof InThisJvm, "its grace is as long as it is");
    downstream.behave(Behaviour.HOLD);
    RunningServer server =
        start(new InThisJvm(hasty(model())), "LAB_DOWNSTREAM_TIMEOUT_MS", HELD_MS);
    int port = server.httpPort();
    try (RawClient client = new RawClient(port)) {
      client.request("GET", "/downstream").request("GET", "/health");
      awaitInFlight(server, 1);
      long begun = System.nanoTime();
      stop();
      started = null;
      if (has(Trait.LIMITS_CLIENTS)) {
        assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(LabServer.STOP_GRACE);
      }
      Deviations.of(model().name()).verify(rule, client.rest(), "closed");
    }
    assertThatThrownBy(() -> new RawClient(port)).isInstanceOf(ConnectException.class);
  }

  /** A model whose grace is soon over. */
  private static ServerModel hasty(ServerModel model) {
    return new ServerModel(
        model.name(),
        model.routes(),
        context -> {
          TrafficServer server = model.start().start(context);
          return new TrafficServer() {
            @Override
            public int port() {
              return server.port();
            }

            @Override
            public void stop(Duration grace) {
              server.stop(Duration.ofMillis(100));
            }
          };
        });
  }

  /** Neither threads nor a server that looks alive. */
  @Test
  void aPortThatIsTakenIsRefusedAndLeavesNoThread() throws Exception {
    String rule = "aPortThatIsTakenIsRefusedAndLeavesNoThread";
    Deviations deviations = Deviations.of(model().name());
    // What a JVM has once and for all is there then.
    assertThat(get(start(), "/health").status()).isEqualTo(200);
    stop();
    started = null;
    Set<Thread> before = Thread.getAllStackTraces().keySet();
    for (String setting : List.of("LAB_HTTP_PORT", "LAB_MANAGEMENT_PORT")) {
      try (ServerSocket taken = new ServerSocket(0)) {
        assertThatThrownBy(() -> start(setting, String.valueOf(taken.getLocalPort())))
            .isInstanceOf(IOException.class);
      }
    }
    if (launcher() instanceof InThisJvm) {
      String expected = deviations.byRule().getOrDefault(rule, "");
      await(() -> namesOfThreadsSince(before).equals(expected));
      deviations.verify(rule, namesOfThreadsSince(before), "");
    }
  }

  private static String namesOfThreadsSince(Set<Thread> before) {
    // So end the threads of those of the JDK's HTTP clients that nobody closes: Spring makes one.
    System.gc();
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> !before.contains(thread))
        .map(Thread::getName)
        // Reactor's, for the whole JVM: it makes them one by one.
        .filter(name -> !name.startsWith("parallel-"))
        .distinct()
        .sorted()
        .collect(Collectors.joining(", "));
  }

  @Test
  void stoppingAnIdleServerDoesNotWait() throws Exception {
    RunningServer server = start();
    try (RawClient idle = new RawClient(server.httpPort())) {
      assertThat(idle.get("/health").status()).isEqualTo(200);
      long begun = System.nanoTime();
      stop();
      started = null;
      assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(LabServer.STOP_GRACE);
    }
  }

  /** HTTP as RFC 9112 has it. One server serves all of these, after every test above. */
  @Nested
  @Tag("protocol")
  class Protocol extends ProtocolTest {
    @Override
    ServerModel model() {
      return ContractTest.this.model();
    }

    @Override
    Launcher launcher() {
      return ContractTest.this.launcher();
    }

    @Override
    Map<String, String> settings() {
      return ContractTest.this.settings();
    }

    @Override
    boolean limitsClients() {
      return has(Trait.LIMITS_CLIENTS);
    }
  }

  // --- how ------------------------------------------------------------------------------------

  /** Starts the model on free ports against the fake downstream, with these settings besides. */
  protected final RunningServer start(String... namesAndValues)
      throws IOException, BadValueException {
    return start(launcher(), namesAndValues);
  }

  private RunningServer start(Launcher launcher, String... namesAndValues)
      throws IOException, BadValueException {
    stopShared();
    RunningServer server = launch(launcher, downstream.url(), namesAndValues);
    started = server;
    return server;
  }

  /**
   * The server of all tests that neither call the downstream nor count nor change anything;
   * starting one for each took most of their time. They are {@link #SHARED}.
   */
  private RunningServer shared() throws IOException, BadValueException {
    RunningServer server = common;
    if (server == null) {
      server = launch(launcher(), "http://127.0.0.1:9/");
      common = server;
    }
    return server;
  }

  private RunningServer launch(Launcher launcher, String downstreamUrl, String... namesAndValues)
      throws IOException, BadValueException {
    Map<String, String> environment = new HashMap<>();
    environment.put("LAB_HTTP_PORT", "0");
    environment.put("LAB_MANAGEMENT_PORT", "0");
    environment.put("LAB_DOWNSTREAM_URL", downstreamUrl);
    environment.put("LAB_TOKEN_SUMS", Management.tokenSums(model().name()));
    environment.putAll(settings());
    for (int i = 0; i < namesAndValues.length; i += 2) {
      environment.put(namesAndValues[i], namesAndValues[i + 1]);
    }
    return launcher.start(environment);
  }

  /** As {@link #start}, with time for calls that the downstream holds. */
  protected final RunningServer startHolding(String... namesAndValues)
      throws IOException, BadValueException {
    String[] all = Arrays.copyOf(namesAndValues, namesAndValues.length + 2);
    all[namesAndValues.length] = "LAB_DOWNSTREAM_TIMEOUT_MS";
    all[namesAndValues.length + 1] = HELD_MS;
    return start(all);
  }

  protected final FakeDownstream downstream() {
    return downstream;
  }

  /** Waits until so many requests for {@code /downstream} are in flight. */
  protected static void awaitInFlight(RunningServer server, int count) throws InterruptedException {
    awaitInFlight(server, "/downstream", count);
  }

  private static void awaitInFlight(RunningServer server, String route, int count)
      throws InterruptedException {
    String inFlight = "lab_http_requests_in_flight{route=\"%s\"}".formatted(route);
    await(() -> management(server).metric(inFlight) == count);
  }

  /** Waits until so many calls have one of the connections to the downstream. */
  protected final void awaitLeased(int count) throws InterruptedException {
    await(() -> mbean("DownstreamConnections", "Leased") == count);
  }

  /** Waits until so many calls wait for one of the connections to the downstream. */
  protected final void awaitPending(int count) throws InterruptedException {
    await(() -> mbean("DownstreamConnections", "Pending") == count);
  }

  private static void setDownstreamTimeout(RunningServer server, String ms) {
    var answer =
        management(server).call("PATCH", "/settings", "{\"downstream_timeout_ms\":" + ms + "}");
    assertThat(answer.statusCode()).isEqualTo(200);
  }

  private static void setCarriers(RunningServer server, String count) {
    var answer =
        management(server)
            .call("PATCH", "/settings", "{\"virtual_thread_parallelism\":" + count + "}");
    assertThat(answer.statusCode()).isEqualTo(200);
  }

  private void stopServer() {
    try {
      requireNonNull(started).close();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private static RawAnswer get(RunningServer server, String target) throws IOException {
    try (RawClient client = new RawClient(server.httpPort())) {
      return client.get(target);
    }
  }

  /** 0 where the connection is refused, or closed without an answer. */
  private static int statusOf(RunningServer server, String target) {
    try {
      return get(server, target).status();
    } catch (IOException e) {
      return 0;
    }
  }

  /** Nobody can connect any more, or whoever does is told that it was the last time. */
  private static boolean isStopping(RunningServer server) {
    try {
      return get(server, "/health").headers().containsKey("Connection");
    } catch (IOException e) {
      return true;
    }
  }

  private static boolean isToldOfClose(RunningServer server) {
    try {
      return "close".equals(get(server, "/health").headers().get("Connection"));
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  static Management management(RunningServer server) {
    return new Management(HTTP, server.managementPort());
  }

  private void assumeDemonstrations() {
    assumeTrue(has(Trait.DEMONSTRATIONS), "no demonstration routes");
  }

  private void assumeWorkerPool() {
    assumeTrue(has(Trait.WORKER_POOL), "the model has no worker pool");
  }

  /** What all threads of the server's JVM have allocated since it started. */
  private static long allocatedBytes(RunningServer server) throws IOException, JMException {
    ObjectName threads = new ObjectName(ManagementFactory.THREAD_MXBEAN_NAME);
    return (long) server.mbeans().getAttribute(threads, "TotalThreadAllocatedBytes");
  }

  private int mbean(String type, String attribute) {
    try {
      return (int)
          requireNonNull(started)
              .mbeans()
              .getAttribute(new ObjectName("lab", "type", type), attribute);
    } catch (IOException | JMException e) {
      throw new AssertionError(type + "." + attribute, e);
    }
  }

  /** Waits until a condition holds that must come to hold. */
  static void await(BooleanSupplier condition) throws InterruptedException {
    long deadline = System.nanoTime() + PATIENCE.toNanos();
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).as("waited %s", PATIENCE).isLessThan(deadline);
      Thread.sleep(5);
    }
  }
}
