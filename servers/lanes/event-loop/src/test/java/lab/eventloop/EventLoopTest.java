package lab.eventloop;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static lab.conformance.ContractTest.Trait.LIMITS_CLIENTS;
import static lab.conformance.ContractTest.Trait.TELLS_UNREAD;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import lab.conformance.ContractTest;
import lab.conformance.FakeDownstream.Behaviour;
import lab.conformance.RunningServer;
import lab.wire.RequestReader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The contract, and what this model says of refused clients, of its loops and of blocking them. */
@Timeout(120)
class EventLoopTest extends ContractTest {
  EventLoopTest() {
    super(EventLoop.MODEL, "loop-", LIMITS_CLIENTS, TELLS_UNREAD);
  }

  @Override
  protected Class<?> main() {
    return EventLoop.class;
  }

  @Test
  void aRefusedClientThatStaysIsClosed() throws Exception {
    RunningServer server = start();
    URI metrics = URI.create("http://127.0.0.1:%d/metrics".formatted(server.managementPort()));
    try (Peer peer = new Peer(server)) {
      peer.send("nonsense\r\n\r\n");
      assertThat(peer.readToEnd()).startsWith("HTTP/1.1 400 ");
      // The client keeps its side open; the test's own timeout ends this.
      String open = "1.0";
      while (!open.equals("0.0")) {
        Thread.sleep(50);
        try (InputStream body = metrics.toURL().openStream()) {
          open =
              new String(body.readAllBytes(), US_ASCII)
                  .replaceFirst("(?s).*\nlab_http_connections_open ([^\n]*)\n.*", "$1");
        }
      }
    }
  }

  /** As much as may be kept unread came while it worked, and is no whole head yet. */
  @Test
  void anUnfinishedHeadOfTheGreatestLengthIsReadOn() throws Exception {
    downstream().behave(Behaviour.HOLD);
    RunningServer server = startHolding();
    try (Peer peer = new Peer(server)) {
      peer.send("GET /downstream HTTP/1.1\r\nHost: lab\r\n\r\n");
      awaitInFlight(server, 1);
      String begin = "GET /health HTTP/1.1\r\nHost: lab\r\nFiller: ";
      peer.send(begin + "x".repeat(RequestReader.MAX_HEAD_BYTES - begin.length()));
      // The only loop reads what was there before it answers who came later.
      try (Peer later = new Peer(server)) {
        later.send("GET /health HTTP/1.1\r\nHost: lab\r\n\r\n");
        assertThat(later.readAnswer()).startsWith("HTTP/1.1 200 ");
      }
      downstream().answerHeld(1);
      assertThat(peer.readAnswer()).startsWith("HTTP/1.1 200 ");
      peer.send("x");
      assertThat(peer.readToEnd()).startsWith("HTTP/1.1 431 ");
    }
  }

  @Test
  void connectionsAreDealtOutToAllLoops() throws Exception {
    RunningServer server = start("LAB_LOOPS", "3");
    Set<String> threads = new HashSet<>();
    for (int i = 0; i < 6; i++) {
      try (Peer peer = new Peer(server)) {
        peer.send("GET /?wait_ms=0 HTTP/1.1\r\nHost: lab\r\n\r\n");
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
        peer.send("GET /downstream HTTP/1.1\r\nHost: lab\r\n\r\n".repeat(10));
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

  @ParameterizedTest
  @ValueSource(strings = {"true", "spin"})
  void blockingTheLoopMakesWaitsFollowEachOther(String how) throws Exception {
    RunningServer server = start("LAB_BLOCK_THE_LOOP", how);
    int clients = 5;
    List<Peer> peers = new ArrayList<>();
    long begun = System.nanoTime();
    try {
      for (int i = 0; i < clients; i++) {
        Peer peer = new Peer(server);
        peers.add(peer);
        peer.send("GET /?wait_ms=50 HTTP/1.1\r\nHost: lab\r\n\r\n");
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
