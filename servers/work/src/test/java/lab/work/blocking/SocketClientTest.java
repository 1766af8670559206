package lab.work.blocking;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.util.stream.Collectors.joining;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import lab.shell.TestContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class SocketClientTest {
  private static final String ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

  /** Or the connections of all shares would end in those of the threads that ask most. */
  @Test
  void aConnectionGoesBackToTheShareThatMadeIt() throws Exception {
    try (ServerSocket downstream = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        TestContext context =
            new TestContext(
                "LAB_DOWNSTREAM_URL", "http://127.0.0.1:" + downstream.getLocalPort() + "/");
        SocketClient client = new SocketClient(context.model())) {
      var _ = Thread.ofVirtual().start(() -> answerOneConnection(downstream));
      int shares = client.shares.size();
      for (int asking = shares - 1; asking >= 0; asking--) {
        ask(client, asking);
      }
      assertThat(client.shares.stream().map(share -> "" + share.idle().size()).collect(joining()))
          .isEqualTo("0".repeat(shares - 1) + "1");
    }
  }

  /** Asks on a thread of that share. */
  private static void ask(SocketClient client, int share) throws InterruptedException {
    Thread thread;
    do {
      thread = Thread.ofVirtual().unstarted(() -> ask(client));
    } while (thread.threadId() % client.shares.size() != share);
    thread.start();
    thread.join();
  }

  private static void ask(SocketClient client) {
    try {
      var _ = client.get(System.nanoTime() + Duration.ofMinutes(1).toNanos());
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private static void answerOneConnection(ServerSocket downstream) {
    try (Socket socket = downstream.accept();
        BufferedReader in =
            new BufferedReader(new InputStreamReader(socket.getInputStream(), US_ASCII))) {
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        if (line.isEmpty()) {
          socket.getOutputStream().write(ANSWER.getBytes(US_ASCII));
        }
      }
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }
}
