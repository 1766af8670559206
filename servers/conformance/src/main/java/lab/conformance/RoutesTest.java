package lab.conformance;

import static java.util.stream.Collectors.joining;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import lab.conformance.RawClient.RawAnswer;
import lab.conformance.Rules.Rule;
import lab.shell.ServerModel;
import lab.spec.Route;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Routes and their answers, metrics, and the management port. */
abstract class RoutesTest extends Fixture {
  RoutesTest(ServerModel model, String threadName) {
    super(model, threadName);
  }

  private Set<Route> routes() {
    return chooses(DEMONSTRATIONS) ? Route.WITH_DEMONSTRATIONS : Route.COMMON;
  }

  @Test
  @Rule("1.1")
  void helloNamesModelAndThreadAfterItsWait() throws Exception {
    long begun = System.nanoTime();
    RawAnswer answer = get("/");
    assertThat(System.nanoTime() - begun).isGreaterThanOrEqualTo(10_000_000);
    assertThat(answer.status()).isEqualTo(200);
    assertThat(answer.body())
        .startsWith(
            "{\"message\":\"hello\",\"model\":\"%s\",\"thread\":\"%s"
                .formatted(model.name(), threadName()));
    assertThat(answer.headers())
        .containsEntry("Lab-Model", model.name())
        .containsEntry("Content-Type", "application/json");
  }

  @ParameterizedTest
  @Rule("1.2")
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          /downstream                          | {"service":"fake","delay_ms":0}
          /synchronized                        | {"service":"fake","delay_ms":0}
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
          /multi-aggregate?branches=100&wait_ms=200 | {"branches":100,"total_waited_ms":20000}
          """)
  void everyLaneGivesTheSameBody(String target, String body) throws Exception {
    String path = target.replaceFirst("\\?.*", "");
    assumeTrue(routes().stream().anyMatch(route -> route.path().equals(path)), "no such route");
    long begun = System.nanoTime();
    RawAnswer answer = get(target);
    assertThat(answer.body()).isEqualTo(body);
    assertThat(answer.status()).isEqualTo(200);
    // One after the other the waits of a row take no less.
    assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(20));
  }

  @Test
  @Rule("1.3")
  void itServesTheRoutesThatItDeclares() throws Exception {
    Set<Route> routes = routes();
    assertThat(call("GET", "/identity", "").body())
        .contains(
            routes.stream()
                .map(route -> '"' + route.path() + '"')
                .sorted()
                .collect(joining(",", "\"routes\":[", "]")));
    for (Route route : Route.WITH_DEMONSTRATIONS) {
      // What is refused does no work.
      assertThat(get(route.path() + "?unknown=1").status())
          .as(route.path())
          .isEqualTo(routes.contains(route) ? 400 : 404);
    }
  }

  @ParameterizedTest
  @Rule("1.4")
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          /no/such                | 404 | no such route
          /?wait_ms=-1            | 400 | wait_ms must be a whole number from 0 to 60000, got '-1'
          /?wait_ms=60001         | 400 | wait_ms must be a whole number from 0 to 60000, got '60001'
          /?wait_ms=              | 400 | wait_ms must be a whole number from 0 to 60000, got ''
          /?wait_ms=1&wait_ms=2   | 400 | wait_ms is given twice
          /?other=1               | 400 | / takes [wait_ms], not 'other'
          /compute?limit=1000001  | 400 | limit must be a whole number from 2 to 1000000, got '1000001'
          /file?lines=0           | 400 | lines must be a whole number from 1 to 100000, got '0'
          /block?wait_ms=9e1      | 400 | wait_ms must be a whole number from 0 to 60000, got '9e1'
          /health?wait_ms=1       | 400 | /health takes [], not 'wait_ms'
          """)
  void aRefusalGivesItsReason(String target, int status, String reason) throws Exception {
    RawAnswer answer = get(target);
    assertThat(answer.status()).isEqualTo(status);
    assertThat(answer.body()).startsWith("{\"error\":\"").contains(reason);
    assertThat(answer.headers()).containsEntry("Lab-Model", model.name());
  }

  @Test
  @Rule("1.5")
  void anyMethodButGetIs405() throws Exception {
    RawClient client = client();
    for (String method : List.of("POST", "PUT", "DELETE", "HEAD")) {
      RawAnswer answer = client.request(method, "/", "Content-Length: 0").read();
      assertThat(answer.status()).isEqualTo(405);
      assertThat(answer.headers()).containsEntry("Allow", "GET");
    }
  }

  @Test
  @Rule("1.6")
  void healthAndMetricsAreOnBothPorts() throws Exception {
    String up = "{\"status\":\"up\",\"model\":\"%s\"}".formatted(model.name());
    assertThat(get("/health").body()).isEqualTo(up);
    assertThat(call("GET", "/health", "").body()).isEqualTo(up);
    RawAnswer answer = get("/metrics");
    // The space means nothing, and some servers leave it out.
    assertThat(answer.headers().get("Content-Type")).matches("text/plain; ?version=0\\.0\\.4;.*");
    assertThat(answer.body()).contains("lab_server_info{");
  }

  @Test
  @Rule({"1.7", "1.8"})
  void answersAreTheSameBytes() throws Exception {
    String body = "{\"status\":\"up\",\"model\":\"%s\"}".formatted(model.name());
    String expected =
        """
        HTTP/1.1 200 OK
        Content-Type: application/json
        Lab-Model: %s
        Date: some day
        Content-Length: %d
        Connection: close

        %s\
        """
            .formatted(model.name(), body.length(), body);
    String seen = client().request("GET", "/health", CLOSE).text();
    String dated = seen.replaceFirst("Date: .{29}\r\n", "Date: some day\r\n");
    verify(dated.equals(expected.replace("\n", "\r\n")) ? "the same" : "others", "the same");
    String date = get("/health").headers().get("Date");
    verifyRow("1.8", date == null ? "no date" : "a date", "a date");
    if (date != null) {
      assertThat(Instant.from(DateTimeFormatter.RFC_1123_DATE_TIME.parse(date)))
          .isCloseTo(Instant.now(), within(1, ChronoUnit.MINUTES));
    }
  }

  @Test
  @Rule("7.1")
  void metricsHaveTheLabsNames() throws Exception {
    String counted =
        """
        lab_http_request_seconds_count{phase="queue",route="/downstream"} 2
        lab_http_request_seconds_count{phase="service",route="/downstream"} 2
        lab_http_request_seconds_count{phase="total",route="/downstream"} 2
        lab_http_request_seconds_bucket{phase="total",route="/downstream",le="60.0"} 2
        lab_http_requests_total{outcome="client_error",route="none"} 1
        lab_http_requests_total{outcome="ok",route="/downstream"} 2
        lab_downstream_calls_total{outcome="ok"} 2
        lab_downstream_call_seconds_count{phase="pending"} 2
        lab_downstream_call_seconds_count{phase="call"} 2
        lab_downstream_unread_seconds_count %d
        """
            .formatted(chooses(UNREAD) ? 2 : 0);
    Map<String, Double> expected = new HashMap<>();
    for (String line : counted.lines().toList()) {
      String[] words = line.split(" ", -1);
      expected.put(words[0], metric(words[0]) + Integer.parseInt(words[1]));
    }
    for (String target : List.of("/downstream", "/downstream", "/no/such")) {
      var _ = get(target);
    }
    // A request ends when its answer is written, which may be after it was read.
    awaitInFlight("none", 0);
    awaitInFlight("/downstream", 0);
    expected.forEach((name, value) -> assertThat(metric(name)).as(name).isEqualTo(value));
    String others =
        """
        lab_kernel_listen_overflows_total lab_kernel_listen_drops_total lab_server_info{
        lab_kernel_tcp_retransmits_total lab_kernel_tcp_syn_retransmits_total lab_local_ports
        lab_kernel_tcp_sockets_in_use lab_kernel_tcp_time_wait lab_kernel_accept_queue_length
        lab_http_request_seconds_bucket{phase="total",route="/downstream",le="0.205"}
        lab_server_start_time_seconds lab_thread_run_seconds_total{threads="collector"}
        lab_thread_runq_seconds_total{threads="worker"} lab_threads_read{threads="loop"}
        """;
    assertThat(allMetrics()).contains(others.strip().split("\\s+", -1));
    if (threadName().startsWith("vt-")) {
      await(() -> metric("lab_virtual_thread_lag_seconds_count") > 0);
    }
    if (has(readBack(), "fronts") && Files.exists(Path.of("/proc/self/schedstat"))) {
      await(() -> metric("lab_thread_run_seconds_total{front=\"front-1\",threads=\"front\"}") > 0);
    }
  }

  @Test
  @Rule("7.2")
  void openConnectionsAreCounted() throws Exception {
    String metric = "lab_http_connections_open";
    if (!allMetrics().contains(metric + " ")) {
      verify("no metric", "counted");
      return;
    }
    // Those of earlier tests may not have been closed yet.
    await(() -> metric(metric) == 0);
    try (RawClient first = client();
        RawClient second = client()) {
      assertThat(first.get("/health").status()).isEqualTo(200);
      assertThat(second.get("/health").status()).isEqualTo(200);
      await(() -> metric(metric) == 2);
    }
    await(() -> metric(metric) == 0);
    verify("counted", "counted");
  }

  /** The lab finds a route in this path, and a framework may not. */
  @Test
  @Rule("7.3")
  void anAnswerIsCountedByItsStatus() throws Exception {
    String errors = "lab_http_requests_total{outcome=\"client_error\",";
    String successes = "lab_http_requests_total{outcome=\"ok\",";
    double errorsBefore = sum(errors);
    double successesBefore = sum(successes);
    int status = get("//health").status();
    assertThat(status).isLessThan(500);
    if (!deviation().isEmpty()) {
      // By then it would have been counted, too.
      await(this::isWell);
      await(() -> sum(successes) > successesBefore);
      verify(sum(errors) > errorsBefore ? "counted" : "not counted", "counted");
    } else {
      await(() -> status < 400 ? sum(successes) > successesBefore : sum(errors) > errorsBefore);
    }
  }

  /**
   * More requests than the 100 after which Tomcat would close, over one connection to the server
   * and one to the downstream. An exception walks the stack for its trace, which costs most where a
   * framework's is deep.
   */
  @Test
  @Rule("7.4")
  void manyRequestsTakeTwoConnectionsAndNoExceptionOfTheLabs() throws Exception {
    int requests = 120;
    RawClient client = client();
    assertThat(client.get("/downstream").status()).isEqualTo(200);
    int connections = downstream().connections();
    List<String> made =
        ExceptionsMade.byTheLab(
            server(),
            () -> {
              for (int i = 0; i < requests; i++) {
                assertThat(client.get("/downstream").status()).isEqualTo(200);
              }
              return null;
            });
    assertThat(made).hasSizeLessThan(requests / 2);
    // One may not be back in its pool when the next call begins.
    assertThat(downstream().connections() - connections).isLessThan(requests / 10);
  }

  @Test
  @Rule("8.1")
  void settingsAndIdentityAreReadBack() throws Exception {
    String begin = "{\"model\":\"%s\",".formatted(model.name());
    String settings = readBack();
    assertThat(settings)
        .startsWith(begin + "\"settings\":{")
        .contains("\"backlog\":1234", downstream().url());
    settings()
        .forEach(
            (name, word) ->
                assertThat(settings)
                    .contains(
                        "\"%s\":\"%s\""
                            .formatted(name.substring(4).toLowerCase(Locale.ROOT), word)));
    for (String shipped : asShipped()) {
      assertThat(settings).doesNotContain(shipped);
    }
    assertThat(has(settings, "pool_size")).isEqualTo(chooses(WORKER_POOL));
    String jvm = "java.lang:type=Runtime";
    assertThat(call("GET", "/identity", "").body())
        .startsWith(begin + "\"version\":")
        .contains("\"pid\":" + attribute(jvm, "Pid"))
        .contains("\"start_time_ms\":" + attribute(jvm, "StartTime"))
        .contains("\"jvm_flags\":[", "\"gc\":[");
  }

  @ParameterizedTest
  @Rule("8.2")
  @CsvSource({
    "downstream_connections, DownstreamConnections, Cap",
    "lock_watch_ms, LockWatch, ThresholdMs",
    "pool_size, WorkerPool, Size",
    "queue_bound, WorkerPool, QueueBound"
  })
  void knobsTurnWhileTheServerRuns(String knob, String type, String attribute) throws Exception {
    if (type.equals("WorkerPool")) {
      assumeChosen(WORKER_POOL);
    }
    int before = mbean(type, attribute);
    for (int value : new int[] {5, 1, before}) {
      turn(knob, value);
      assertThat(readBack()).contains("\"%s\":%d".formatted(knob, value));
      assertThat(mbean(type, attribute)).isEqualTo(value);
      assertThat(get("/downstream").status()).isEqualTo(200);
    }
  }
}
