package lab.shell;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import lab.spec.Settings;
import org.junit.jupiter.api.Test;

/** What the contract puts around a model, here around one that does nothing. */
class LabServerTest {
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

  private LabServer start() throws Exception {
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
    return LabServer.start(
        model, Settings.fromEnvironment(Map.of("LAB_MANAGEMENT_PORT", "0")), () -> {});
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
    try (Socket socket = connect(server)) {
      String request = call + " HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n";
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
