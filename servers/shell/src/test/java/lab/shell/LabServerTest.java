package lab.shell;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import lab.spec.Settings;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What the contract puts around a model, here around one that does nothing. */
class LabServerTest {
  private static final String TOKEN = "token of the tests";

  /** Its SHA-256. */
  private static final String TOKEN_SUMS =
      "nothing=566ae962c6d0d4423a4f42c0cc7c536461d8788dd65ee488ef4b0b358d829500";

  private static final String SECOND_LINE_MISSING = "GET /health HTTP/1.1\r\n";

  private volatile boolean bug;

  /** The JDK's server would close the connection, and tell nobody. */
  @Test
  void aBugBehindTheManagementPortIsAnsweredInOneLine() throws Exception {
    try (LabServer server = start()) {
      bug = true;
      assertThat(ask(server, "GET /metrics"))
          .startsWith("HTTP/1.1 500 ")
          .endsWith(
              "{\"error\":\"GET /metrics failed: java.lang.IllegalStateException:"
                  + " planted by a test\"}");
      bug = false;
      assertThat(ask(server, "GET /metrics")).startsWith("HTTP/1.1 200 ").contains("planted 1.0");
    }
  }

  /** As a round trip whose packets are lost: 25 s each. */
  @Test
  void noCallHoldsUpAScrape() throws Exception {
    List<Socket> slow = new ArrayList<>();
    try (LabServer server = start()) {
      for (int i = 0; i < 5; i++) {
        Socket socket = connect(server);
        slow.add(socket);
        socket.getOutputStream().write(SECOND_LINE_MISSING.getBytes(US_ASCII));
      }
      assertThat(ask(server, "GET /metrics")).startsWith("HTTP/1.1 200 ");
    } finally {
      for (Socket each : slow) {
        each.close();
      }
    }
  }

  @Test
  void withoutTheTokenTheManagementPortTellsHealthAndMetricsOnly() throws Exception {
    String refused =
        "GET /identity, GET /settings, PATCH /settings, GET /time, GET /round-trip, POST /gc,"
            + " POST /restart, POST /recording/cpu, POST /recording/end, POST /health,"
            + " GET /metrics/, GET /none";
    try (LabServer server = start()) {
      for (String token : List.of("", "token of another", TOKEN_SUMS)) {
        for (String call : refused.split(", ", -1)) {
          assertThat(ask(server, call, token, "{\"downstream_timeout_ms\":1}"))
              .startsWith("HTTP/1.1 403 ")
              .contains("needs the server's token");
        }
        for (String call : List.of("GET /health", "GET /metrics")) {
          assertThat(ask(server, call, token, "")).startsWith("HTTP/1.1 200 ");
        }
      }
      assertThat(ask(server, "GET /settings", TOKEN, ""))
          .contains("\"downstream_timeout_ms\":10000");
    }
  }

  @Test
  void clockRoundTripAndLiveHeapAreReported() throws Exception {
    String url = "http://127.0.0.1:%d/";
    try (ServerSocket downstream = new ServerSocket(0);
        LabServer server = start("LAB_DOWNSTREAM_URL", url.formatted(downstream.getLocalPort()))) {
      long before = System.currentTimeMillis();
      String time =
          ask(server, "GET /time", TOKEN, "").replaceFirst("(?s).*\"unix_ms\":(\\d+)}", "$1");
      assertThat(Long.parseLong(time)).isBetween(before, System.currentTimeMillis());
      assertThat(ask(server, "GET /round-trip", TOKEN, ""))
          .containsPattern("\\{\"microseconds\":\\d+}");
      assertThat(ask(server, "POST /gc", TOKEN, ""))
          .containsPattern("\\{\"heap_used_bytes\":[1-9]\\d{5,}}");
    }
    // Bound, and not listening, so that it refuses.
    try (Socket bound = new Socket()) {
      bound.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      try (LabServer server = start("LAB_DOWNSTREAM_URL", url.formatted(bound.getLocalPort()))) {
        assertThat(ask(server, "GET /round-trip", TOKEN, "")).startsWith("HTTP/1.1 502 ");
      }
    }
  }

  /** What a recording contains is tested in its module. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          POST /recording/cpu   | {"seconds":0}  | 400 | seconds must be a whole number from 1
          POST /recording/alloc | {}             | 400 | seconds must be a whole number from 1
          POST /recording/lock  | {"seconds":1x} | 400 | the body must be an object of whole numbers
          POST /recording/end   | {}             | 409 | nothing was recorded
          POST /recording/wall  | {}             | 404 | /recording/cpu /recording/alloc /recording/lock
          PATCH /settings       | {"backlog":5}  | 400 | cannot be changed
          PATCH /settings       | {"a":1,"a":2}  | 400 | given twice
          PATCH /settings       | nothing        | 400 | the body must be an object of whole numbers
          PATCH /settings       | {"lock_watch_ms":-1} | 400 | lock_watch_ms must be a whole number
          PATCH /settings       | {"lock_watch_ms":x}  | 400 | the body must be an object of whole numbers
          """)
  void aBadCallIsRefusedAndChangesNothing(String call, String body, int status, String reason)
      throws Exception {
    try (LabServer server = start()) {
      String before = ask(server, "GET /settings", TOKEN, "").replaceFirst("(?s).*\r\n\r\n", "");
      assertThat(ask(server, call, TOKEN, body)).startsWith("HTTP/1.1 " + status).contains(reason);
      assertThat(ask(server, "GET /settings", TOKEN, "")).endsWith(before);
    }
  }

  /** What has started of it would go on, and look like a server. */
  @Test
  void aServerThatCannotStartEndsItsProcess() throws Exception {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-preview",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("java.class.path"),
                HalfStarted.class.getName())
            .redirectErrorStream(true)
            .start();
    try (BufferedReader log =
        new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8))) {
      assertThat(process.waitFor(1, TimeUnit.MINUTES)).isTrue();
      assertThat(process.exitValue()).isEqualTo(1);
      assertThat(log.lines())
          .anyMatch(line -> line.contains("a bug: nothing cannot start"))
          .anyMatch(line -> line.contains("planted by a test"));
    } finally {
      process.destroyForcibly();
    }
  }

  /** Its process. */
  static final class HalfStarted {
    private HalfStarted() {}

    public static void main(String[] args) throws Exception {
      LabServer.main(
          new ServerModel(
              "nothing",
              context -> {
                var _ = Thread.ofPlatform().start(HalfStarted::waitForEver);
                throw new AssertionError("planted by a test");
              }));
    }

    private static void waitForEver() {
      try {
        Thread.sleep(Duration.ofDays(1));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private LabServer start(String... namesAndValues) throws Exception {
    ServerModel model =
        new ServerModel(
            "nothing",
            context -> {
              var _ =
                  GaugeWithCallback.builder()
                      .name("planted")
                      .callback(callback -> callback.call(value()))
                      .register(context.registry());
              return new NoTraffic();
            });
    Map<String, String> environment =
        new HashMap<>(Map.of("LAB_MANAGEMENT_PORT", "0", "LAB_TOKEN_SUMS", TOKEN_SUMS));
    for (int i = 0; i < namesAndValues.length; i += 2) {
      environment.put(namesAndValues[i], namesAndValues[i + 1]);
    }
    return LabServer.start(model, Settings.fromEnvironment(environment), () -> {});
  }

  private double value() {
    if (bug) {
      throw new IllegalStateException("planted by a test");
    }
    return 1;
  }

  private static Socket connect(LabServer server) throws IOException {
    Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.managementPort());
    socket.setSoTimeout(60_000);
    return socket;
  }

  private static String ask(LabServer server, String call) throws IOException {
    return ask(server, call, "", "");
  }

  /** An empty token is none. */
  private static String ask(LabServer server, String call, String token, String body)
      throws IOException {
    try (Socket socket = connect(server)) {
      String request =
          "%s HTTP/1.1\r\nHost: lab\r\nConnection: close\r\nContent-Length: %d\r\n%s\r\n%s"
              .formatted(
                  call, body.length(), token.isEmpty() ? "" : "Lab-Token: " + token + "\r\n", body);
      socket.getOutputStream().write(request.getBytes(US_ASCII));
      return new String(socket.getInputStream().readAllBytes(), UTF_8);
    }
  }

  private static final class NoTraffic implements TrafficServer {
    @Override
    public int port() {
      return 0;
    }

    @Override
    public void stop(Duration grace) {
      // There is nothing.
    }
  }
}
