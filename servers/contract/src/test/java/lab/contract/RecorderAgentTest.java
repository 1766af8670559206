package lab.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import com.sun.net.httpserver.HttpServer;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import javax.management.JMException;
import javax.management.JMX;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class RecorderAgentTest {
  private final MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
  private final ObjectName name;
  private HttpServer agent;

  RecorderAgentTest() throws JMException {
    name = new ObjectName("lab:type=LockWatch");
  }

  @BeforeEach
  void begin() throws Exception {
    agent = RecorderPort.open(0);
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
    URI uri = URI.create("http://localhost:" + agent.getAddress().getPort() + path);
    try (HttpClient client = HttpClient.newHttpClient()) {
      return client.send(
          HttpRequest.newBuilder(uri).method(method, BodyPublishers.ofString(body)).build(),
          BodyHandlers.ofString());
    }
  }
}
