package lab.jdkpool;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.net.Socket;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executors;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import lab.jdkhttp.JdkHttp;
import lab.shell.LabServer;
import lab.spec.Settings;
import org.junit.jupiter.api.Test;

class JdkHttpTest {
  /** The JDK's server would close the connection, and tell nobody. */
  @Test
  void aBugAroundTheWorkIsLogged() throws Exception {
    List<String> said = new CopyOnWriteArrayList<>();
    Handler handler = new Appending(said);
    Logger log = Logger.getLogger(JdkHttp.class.getName());
    log.addHandler(handler);
    Map<String, String> environment = Map.of("LAB_HTTP_PORT", "0", "LAB_MANAGEMENT_PORT", "0");
    // No header can have this name.
    try (LabServer server =
            LabServer.start(
                JdkHttp.model("a\nb", settings -> Executors.newCachedThreadPool()),
                Settings.fromEnvironment(environment),
                () -> {});
        Socket client = new Socket(InetAddress.getLoopbackAddress(), server.httpPort())) {
      client.setSoTimeout(60_000);
      client
          .getOutputStream()
          .write("GET /health HTTP/1.1\r\nHost: lab\r\n\r\n".getBytes(US_ASCII));
      assertThat(client.getInputStream().readAllBytes()).isEmpty();
    } finally {
      log.removeHandler(handler);
    }
    assertThat(said).contains("a bug: a request failed");
  }

  private static final class Appending extends Handler {
    private final List<String> said;

    Appending(List<String> said) {
      this.said = said;
    }

    @Override
    public void publish(LogRecord line) {
      said.add(line.getMessage());
    }

    @Override
    public void flush() {
      // There is nothing.
    }

    @Override
    public void close() {
      // There is nothing.
    }
  }
}
