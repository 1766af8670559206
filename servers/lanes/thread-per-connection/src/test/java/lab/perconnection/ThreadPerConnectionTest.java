package lab.perconnection;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static lab.conformance.ContractTest.Trait.DEMONSTRATIONS;
import static lab.conformance.ContractTest.Trait.LIMITS_CLIENTS;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import lab.conformance.ContractTest;
import lab.conformance.FakeDownstream.Behaviour;
import lab.conformance.RunningServer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The contract, and what this server of the lab's own does about slow, odd and half-closed clients.
 */
@Timeout(120)
class ThreadPerConnectionTest extends ContractTest {
  private static final Pattern STATUS = Pattern.compile("HTTP/1\\.1 (\\d{3}) ");

  ThreadPerConnectionTest() {
    super(ThreadPerConnection.MODEL, "vt-connection-", DEMONSTRATIONS, LIMITS_CLIENTS);
  }

  @Override
  protected Class<?> main() {
    return ThreadPerConnection.class;
  }

  /** Each row's input ends with its half of the connection; {@code ~} is a line's end. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          GET /health HTTP/1.1~Host: a~~                                                    | 200
          ~~GET /health HTTP/1.1~Host: a~~                                                  | 200
          GET /health HTTP/1.0~~GET /health HTTP/1.1~Host: a~~                              | 200
          GET /health HTTP/1.0~Connection: keep-alive~~GET /none HTTP/1.1~Host: a~~         | 200 404
          GET /health HTTP/1.1~Host: a~~GET / HTTP/1.1~Host: a~~GET /hal                            | 200 200
          GET /health HTTP/1.1~Host: a~Content-Length: 5~~helloGET /none HTTP/1.1~Host: a~~         | 200 404
          GET /health HTTP/1.1~Host: a~Transfer-Encoding: chunked~~3~abc~0~~GET /none HTTP/1.1~Host: a~~ | 200 404
          GET /health HTTP/1.1~Host: a~Transfer-Encoding: chunked~~x~                       | 400
          GET /health HTTP/1.1~Host: a~Content-Length: 5~~hell                              |
          PUT / HTTP/1.1~Host: a~Content-Length: 2~Expect: 100-continue~~ok                 | 100 405
          PUT / HTTP/1.1~Host: a~Expect: 100-continue~~                                     | 405
          HEAD / HTTP/1.1~Host: a~~GET /health HTTP/1.1~Host: a~~                                   | 405 200
          GET /health HTTP/1.1~Host: a~Content-Length: 1~Transfer-Encoding: chunked~~       | 400
          GET /health HTTP/1.1~Host: a~~NONSENSE~~GET /health HTTP/1.1~Host: a~~                    | 200 400
          """)
  void whatIsSentIsAnsweredInOrder(String sent, String statuses) throws Exception {
    try (Peer peer = new Peer(start())) {
      peer.send(sent.replace("~", "\r\n"));
      peer.endOutput();
      assertThat(statuses(peer.readToEnd()))
          .isEqualTo(statuses == null ? List.of() : List.of(statuses.split(" ")));
    }
  }

  @Test
  void aHeadThatIsTooLongIs431AndTheClientCanReadIt() throws Exception {
    try (Peer peer = new Peer(start())) {
      peer.send(
          "GET / HTTP/1.1\r\nHost: lab\r\n"
              + ("Filler: " + "x".repeat(1_000) + "\r\n").repeat(300));
      assertThat(peer.readToEnd()).startsWith("HTTP/1.1 431 ").contains("Connection: close");
    }
  }

  @Test
  void aHeadAsLongAsAllowedAndALongBodyMayComeInAnyPieces() throws Exception {
    String filler = "GET /health HTTP/1.1\r\nHost: lab\r\nFiller: " + "x".repeat(32_000) + "\r\n";
    String text = filler + "Content-Length: 100000\r\n\r\n" + "y".repeat(100_000);
    try (Peer peer = new Peer(start())) {
      peer.send(text + text + "GET /health HTTP/1.1\r\nHost: lab\r\n\r\n");
      for (char each :
          "GET /none HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n".toCharArray()) {
        peer.send(String.valueOf(each));
        // Not for timing: so that the kernel does not join the bytes.
        Thread.sleep(1);
      }
      assertThat(statuses(peer.readToEnd())).containsExactly("200", "200", "200", "404");
    }
  }

  @Test
  void aClientThatLeavesInTheMiddleLeavesNothingBehind() throws Exception {
    downstream().behave(Behaviour.HOLD);
    RunningServer server = startHolding();
    try (Peer leaving = new Peer(server)) {
      leaving.send("GET /downstream HTTP/1.1\r\nHost: lab\r\n\r\n");
      awaitInFlight(server, 1);
    }
    downstream().answerHeld(1);
    awaitInFlight(server, 0);
    awaitLeased(0);
  }

  private static List<String> statuses(String answers) {
    return STATUS.matcher(answers).results().map((MatchResult found) -> found.group(1)).toList();
  }

  /** A client that sends any bytes. */
  private static final class Peer implements AutoCloseable {
    private final Socket socket = new Socket();
    private final InputStream in;

    Peer(RunningServer server) throws IOException {
      socket.setReceiveBufferSize(4096);
      socket.setSoTimeout(60_000);
      socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), server.httpPort()));
      in = socket.getInputStream();
    }

    void send(String text) throws IOException {
      socket.getOutputStream().write(text.getBytes(US_ASCII));
    }

    void endOutput() throws IOException {
      socket.shutdownOutput();
    }

    String readToEnd() throws IOException {
      return new String(in.readAllBytes(), US_ASCII);
    }

    @Override
    public void close() throws IOException {
      socket.close();
    }
  }
}
