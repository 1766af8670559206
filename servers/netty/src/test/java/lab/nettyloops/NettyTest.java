package lab.nettyloops;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import lab.contract.ServerModel;
import lab.contract.test.ContractTest;
import lab.contract.test.RunningServer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class NettyTest extends ContractTest {
  @Override
  protected ServerModel model() {
    return Netty.MODEL;
  }

  @Override
  protected String threadName() {
    return "netty-loop-";
  }

  /** They are the management port's, fixed for the JVM; here other values are to be tried. */
  @BeforeEach
  @AfterEach
  void forgetFlagsOfTheJdksServer() {
    System.clearProperty("sun.net.httpserver.maxIdleConnections");
    System.clearProperty("sun.net.httpserver.idleInterval");
  }

  /** It asks on and on and never reads: idle it is not, but it is its turn. */
  @Test
  void aClientThatDoesNotReadIsClosedInTheEnd() throws Exception {
    RunningServer server = start("LAB_KEEP_ALIVE_TIMEOUT_S", "1");
    try (Socket socket = new Socket()) {
      socket.setReceiveBufferSize(4096);
      socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), server.httpPort()));
      Thread asking = Thread.ofVirtual().start(() -> askUntilClosed(socket));
      assertThat(asking.join(Duration.ofSeconds(60))).isTrue();
    }
  }

  private static void askUntilClosed(Socket socket) {
    byte[] requests = "GET /metrics HTTP/1.1\r\nHost: lab\r\n\r\n".repeat(100).getBytes(US_ASCII);
    try {
      OutputStream out = socket.getOutputStream();
      while (true) {
        out.write(requests);
      }
    } catch (IOException e) {
      // Closed, as it should be.
    }
  }
}
