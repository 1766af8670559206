package lab.eventloop;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import lab.contract.ServerModel;
import lab.contract.test.ContractTest;
import lab.contract.test.FakeDownstream.Behaviour;
import lab.contract.test.RunningServer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The contract, and what this model does about slow, odd and half-closed clients. */
@Timeout(120)
class EventLoopTest extends ContractTest {
  @Override
  protected ServerModel model() {
    return EventLoop.MODEL;
  }

  @Override
  protected String threadName() {
    return "loop-";
  }

  /** They are the management port's, fixed for the JVM; here other values are to be tried. */
  @BeforeEach
  @AfterEach
  void forgetFlagsOfTheJdksServer() {
    System.clearProperty("sun.net.httpserver.maxIdleConnections");
    System.clearProperty("sun.net.httpserver.idleInterval");
  }

  @Test
  void aHeadThatIsTooLongIs431AndTheClientCanReadIt() throws Exception {
    String line = "Filler: " + "x".repeat(1_000) + "\r\n";
    try (Peer peer = new Peer(start())) {
      peer.send("GET / HTTP/1.1\r\n" + line.repeat(300));
      assertThat(peer.readToEnd()).startsWith("HTTP/1.1 431 ").contains("Connection: close");
    }
  }

  @Test
  void theOldProtocolClosesUnlessAskedToStay() throws Exception {
    RunningServer server = start();
    try (Peer peer = new Peer(server)) {
      peer.send("GET /health HTTP/1.0\r\n\r\n");
      assertThat(peer.readToEnd()).startsWith("HTTP/1.1 200 ").contains("Connection: close");
    }
    try (Peer peer = new Peer(server)) {
      peer.send("GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
      assertThat(peer.readAnswer()).contains("Connection: keep-alive");
      peer.send("GET /health HTTP/1.0\r\n\r\n");
      assertThat(peer.readToEnd()).startsWith("HTTP/1.1 200 ");
    }
  }

  @Test
  void aRequestMayComeByteByByte() throws Exception {
    try (Peer peer = new Peer(start())) {
      for (char each : "GET /health HTTP/1.1\r\nHost: lab\r\n\r\n".toCharArray()) {
        peer.send(String.valueOf(each));
        // Not for timing: so that the kernel does not join the bytes.
        Thread.sleep(1);
      }
      assertThat(peer.readAnswer()).startsWith("HTTP/1.1 200 ");
    }
  }

  @Test
  void bodiesArePassedOver() throws Exception {
    String get = "GET /health HTTP/1.1\r\n";
    try (Peer peer = new Peer(start())) {
      peer.send(get + "Content-Length: 100000\r\n\r\n" + "x".repeat(100_000));
      peer.send(get + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
      peer.send(get + "\r\n");
      for (int i = 0; i < 3; i++) {
        assertThat(peer.readAnswer()).startsWith("HTTP/1.1 200 ");
      }
      peer.send(get + "Transfer-Encoding: chunked\r\n\r\nx\r\n");
      assertThat(peer.readToEnd()).startsWith("HTTP/1.1 400 ");
    }
  }

  @Test
  void aClientThatAsksWhetherToSendItsBodyIsToldTo() throws Exception {
    try (Peer peer = new Peer(start())) {
      peer.send("PUT / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
      assertThat(peer.readAnswer()).startsWith("HTTP/1.1 100 ");
      peer.send("ok");
      assertThat(peer.readAnswer()).startsWith("HTTP/1.1 405 ");
    }
  }

  @Test
  void aClientThatHasSaidAllStillGetsItsAnswers() throws Exception {
    try (Peer peer = new Peer(start())) {
      peer.send("GET /?wait_ms=20 HTTP/1.1\r\n\r\nGET /health HTTP/1.1\r\n\r\nGET /hal");
      peer.endOutput();
      String answers = peer.readToEnd();
      assertThat(answers).contains("\"hello\"").contains("\"up\"");
      assertThat(answers.split("HTTP/1.1 ", -1)).hasSize(3);
    }
  }

  @Test
  void answersWaitForAClientThatDoesNotRead() throws Exception {
    RunningServer server = start();
    int requests = 3_000;
    try (Peer slow = new Peer(server);
        Peer other = new Peer(server)) {
      // Some 15 MB of answers: more than the sockets hold, so the loop has to keep the rest back.
      Thread sender =
          Thread.ofVirtual()
              .start(
                  () -> {
                    for (int i = 0; i < requests; i++) {
                      slow.send("GET /metrics HTTP/1.1\r\n\r\n");
                    }
                  });
      for (int i = 0; i < 100; i++) {
        other.send("GET /health HTTP/1.1\r\n\r\n");
        assertThat(other.readAnswer()).startsWith("HTTP/1.1 200 ");
      }
      for (int i = 0; i < requests; i++) {
        assertThat(slow.readAnswer()).startsWith("HTTP/1.1 200 ");
      }
      sender.join();
    }
  }

  @Test
  void aQuietClientIsClosed() throws Exception {
    try (Peer peer = new Peer(start("LAB_KEEP_ALIVE_TIMEOUT_S", "3"))) {
      peer.send("GET /health HTTP/1.1\r\n\r\n");
      assertThat(peer.readAnswer()).doesNotContain("Connection: close");
      peer.send("GET /hea");
      assertThat(peer.readToEnd()).isEmpty();
    }
  }

  @Test
  void beyondTheMostIdleAConnectionIsClosedAfterItsAnswer() throws Exception {
    RunningServer server = start("LAB_KEEP_ALIVE_MAX_IDLE", "1");
    try (Peer first = new Peer(server)) {
      first.send("GET /health HTTP/1.1\r\n\r\n");
      assertThat(first.readAnswer()).doesNotContain("Connection: close");
      try (Peer second = new Peer(server)) {
        second.send("GET /health HTTP/1.1\r\n\r\n");
        assertThat(second.readToEnd()).contains("Connection: close");
      }
      first.send("GET /health HTTP/1.1\r\n\r\n");
      assertThat(first.readAnswer()).startsWith("HTTP/1.1 200 ");
    }
  }

  @Test
  void beyondTheBoundRequestsInFlightAreAnswered503() throws Exception {
    downstream().behave(Behaviour.HOLD);
    RunningServer server = startHolding("LAB_QUEUE_BOUND", "2");
    try (Peer first = new Peer(server);
        Peer second = new Peer(server);
        Peer rejected = new Peer(server)) {
      first.send("GET /downstream HTTP/1.1\r\n\r\n");
      second.send("GET /downstream HTTP/1.1\r\n\r\n");
      awaitInFlight(server, 2);
      rejected.send("GET /health HTTP/1.1\r\n\r\n");
      assertThat(rejected.readAnswer())
          .startsWith("HTTP/1.1 503 ")
          .doesNotContain("Connection: close");
      downstream().answerHeld(2);
      assertThat(first.readAnswer()).startsWith("HTTP/1.1 200 ");
      assertThat(second.readAnswer()).startsWith("HTTP/1.1 200 ");
      rejected.send("GET /health HTTP/1.1\r\n\r\n");
      assertThat(rejected.readAnswer()).startsWith("HTTP/1.1 200 ");
    }
  }

  @Test
  void connectionsAreDealtOutToAllLoops() throws Exception {
    RunningServer server = start("LAB_LOOPS", "3");
    Set<String> threads = new HashSet<>();
    for (int i = 0; i < 6; i++) {
      try (Peer peer = new Peer(server)) {
        peer.send("GET /?wait_ms=0 HTTP/1.1\r\n\r\n");
        threads.add(peer.readAnswer().replaceFirst("(?s).*\"thread\":\"([^\"]*)\".*", "$1"));
      }
    }
    assertThat(threads).containsExactlyInAnyOrder("loop-1", "loop-2", "loop-3");
  }

  @Test
  void downstreamPlacesAreSharedByAllLoops() throws Exception {
    RunningServer server = start("LAB_LOOPS", "2", "LAB_DOWNSTREAM_CONNECTIONS", "1");
    List<Peer> peers = new ArrayList<>();
    try {
      for (int i = 0; i < 20; i++) {
        Peer peer = new Peer(server);
        peers.add(peer);
        peer.send("GET /downstream HTTP/1.1\r\n\r\n".repeat(10));
      }
      for (Peer peer : peers) {
        for (int i = 0; i < 10; i++) {
          assertThat(peer.readAnswer()).startsWith("HTTP/1.1 200 ");
        }
      }
    } finally {
      for (Peer peer : peers) {
        peer.close();
      }
    }
  }

  @Test
  void aPlaceThatComesFreeGoesToWhoeverWaitedLongestOnWhicheverLoop() throws Exception {
    downstream().behave(Behaviour.HOLD);
    RunningServer server = startHolding("LAB_LOOPS", "2", "LAB_DOWNSTREAM_CONNECTIONS", "1");
    // Connections are dealt out in turn: the first and the third are of one loop.
    try (Peer holder = new Peer(server);
        Peer ofTheOtherLoop = new Peer(server);
        Peer ofTheSameLoop = new Peer(server)) {
      holder.send("GET /downstream HTTP/1.1\r\n\r\n");
      awaitLeased(1);
      ofTheOtherLoop.send("GET /downstream HTTP/1.1\r\n\r\n");
      awaitPending(1);
      ofTheSameLoop.send("GET /downstream HTTP/1.1\r\n\r\n");
      awaitPending(2);
      downstream().answerHeld(1);
      assertThat(holder.readAnswer()).startsWith("HTTP/1.1 200 ");
      downstream().answerHeld(1);
      assertThat(ofTheOtherLoop.readAnswer()).startsWith("HTTP/1.1 200 ");
      awaitPending(0);
      downstream().answerHeld(1);
      assertThat(ofTheSameLoop.readAnswer()).startsWith("HTTP/1.1 200 ");
    }
  }

  @Test
  void blockingTheLoopMakesWaitsFollowEachOther() throws Exception {
    RunningServer server = start("LAB_BLOCK_THE_LOOP", "true");
    int clients = 5;
    List<Peer> peers = new ArrayList<>();
    long begun = System.nanoTime();
    try {
      for (int i = 0; i < clients; i++) {
        Peer peer = new Peer(server);
        peers.add(peer);
        peer.send("GET /?wait_ms=50 HTTP/1.1\r\n\r\n");
      }
      for (Peer peer : peers) {
        assertThat(peer.readAnswer()).startsWith("HTTP/1.1 200 ");
      }
    } finally {
      for (Peer peer : peers) {
        peer.close();
      }
    }
    assertThat(System.nanoTime() - begun).isGreaterThanOrEqualTo(clients * 50_000_000L);
  }

  /** A client that sends any bytes. */
  private static final class Peer implements AutoCloseable {
    private final Socket socket;
    private final InputStream in;

    Peer(RunningServer server) throws IOException {
      socket = new Socket(InetAddress.getLoopbackAddress(), server.httpPort());
      socket.setSoTimeout(60_000);
      in = new BufferedInputStream(socket.getInputStream());
    }

    void send(String text) {
      try {
        socket.getOutputStream().write(text.getBytes(US_ASCII));
      } catch (IOException e) {
        throw new AssertionError(e);
      }
    }

    void endOutput() throws IOException {
      socket.shutdownOutput();
    }

    String readToEnd() throws IOException {
      return new String(in.readAllBytes(), US_ASCII);
    }

    /** Returns head and body of the next answer, whose length is told. */
    String readAnswer() throws IOException {
      StringBuilder answer = new StringBuilder();
      int next;
      while (answer.indexOf("\r\n\r\n") < 0 && (next = in.read()) >= 0) {
        answer.append((char) next);
      }
      int length = answer.indexOf("Content-Length: ");
      if (length >= 0) {
        int end = answer.indexOf("\r\n", length);
        int count = Integer.parseInt(answer.substring(length + 16, end));
        answer.append(new String(in.readNBytes(count), US_ASCII));
      }
      return answer.toString();
    }

    @Override
    public void close() throws IOException {
      socket.close();
    }
  }
}
