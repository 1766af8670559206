package lab.recorder;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpServer;
import java.lang.management.ManagementFactory;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import javax.management.JMException;
import javax.management.JMX;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RecorderAgentTest {
  /** {@code printf abc | sha256sum}. */
  private static final String SUM =
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

  private final MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
  private final ObjectName name;
  @TempDir private Path jmx = Path.of("unset");
  private HttpServer agent;

  RecorderAgentTest() throws JMException {
    name = new ObjectName("lab:type=LockWatch");
  }

  @BeforeEach
  void begin() throws Exception {
    Path sum = jmx.resolve("lab-recorder.sum");
    agent = RecorderPort.open(new InetSocketAddress(0), sum);
    assertThat(ask("POST", "/recording/cpu", "{\"seconds\":60}").statusCode()).isEqualTo(403);
    Files.writeString(sum, SUM + "\n", UTF_8);
  }

  @AfterEach
  void end() throws JMException {
    agent.stop(0);
    if (beans.isRegistered(name)) {
      beans.unregisterMBean(name);
    }
  }

  @Test
  void itRecordsAsAServerOfTheLabDoes() throws Exception {
    assertThat(ask("GET", "/health", "").statusCode()).isEqualTo(200);
    assertThat(ask("POST", "/recording/alloc", "{\"seconds\":60}").body())
        .isEqualTo("{\"events\":[\"jdk.ObjectAllocationSample\"]}");
    assertThat(ask("POST", "/recording/cpu", "{\"seconds\":60}").statusCode()).isEqualTo(409);
    assertThat(ask("POST", "/recording/end", "{}").body()).contains("\"stacks\":{");
    assertThat(ask("POST", "/recording/end", "{}").statusCode()).isEqualTo(409);
  }

  /** As from another container of the lab's network. */
  @Test
  void withoutTheTokenItOnlyTellsThatItIsThere() throws Exception {
    for (String token : List.of("", SUM, "another")) {
      for (String path :
          List.of("/recording/cpu", "/recording/lock", "/recording/end", "/health", "/none")) {
        assertThat(ask(token, "POST", path, "{\"seconds\":60}").statusCode())
            .as(path)
            .isEqualTo(403);
      }
      assertThat(ask(token, "GET", "/health", "").body()).isEqualTo("{\"status\":\"up\"}");
    }
    assertThat(ask("POST", "/recording/end", "{}").body()).contains("nothing was recorded");
  }

  @Test
  void itMayListenAtOneAddressOnly() throws Exception {
    agent.stop(0);
    agent = RecorderPort.open(RecorderAgent.address("127.0.0.1:0"), jmx);
    int port = agent.getAddress().getPort();
    new Socket(InetAddress.ofLiteral("127.0.0.1"), port).close();
    assertThatThrownBy(() -> new Socket(InetAddress.ofLiteral("127.0.0.2"), port))
        .isInstanceOf(ConnectException.class);
  }

  @Test
  void wrongCallsAreRefusedInOneLine() throws Exception {
    assertThat(ask("POST", "/recording/wall", "{}").statusCode()).isEqualTo(404);
    HttpResponse<String> answer = ask("POST", "/recording/cpu", "{\"seconds\":0}");
    assertThat(answer.statusCode()).isEqualTo(400);
    assertThat(answer.body()).contains("seconds must be a whole number from 1 to 3600");
  }

  @Test
  void aPortThatCannotBeTakenDoesNotKeepTheServiceFromStarting() {
    String taken = Integer.toString(agent.getAddress().getPort());
    assertThatCode(() -> RecorderAgent.premain(taken)).doesNotThrowAnyException();
    for (String wrong : new String[] {"none", "0,lock_watch_ms=-1", "0,locks=10"}) {
      assertThatCode(() -> RecorderAgent.premain(wrong)).doesNotThrowAnyException();
    }
  }

  @Test
  void itWatchesLocksForTheJmxExporter() {
    RecorderAgent.premain("0,lock_watch_ms=10");
    LockWatchMXBean locks = JMX.newMXBeanProxy(beans, name, LockWatchMXBean.class);
    assertThat(locks.getThresholdMs()).isEqualTo(10);
    assertThat(locks.getWaitedSeconds()).isEmpty();
  }

  private HttpResponse<String> ask(String method, String path, String body) throws Exception {
    return ask("abc", method, path, body);
  }

  private HttpResponse<String> ask(String token, String method, String path, String body)
      throws Exception {
    URI uri = URI.create("http://localhost:" + agent.getAddress().getPort() + path);
    try (HttpClient client = HttpClient.newHttpClient()) {
      return client.send(
          HttpRequest.newBuilder(uri)
              .header("Lab-Token", token)
              .method(method, BodyPublishers.ofString(body))
              .build(),
          BodyHandlers.ofString());
    }
  }
}
