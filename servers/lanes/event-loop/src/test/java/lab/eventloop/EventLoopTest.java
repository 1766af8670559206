package lab.eventloop;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import lab.conformance.ContractTest;
import lab.conformance.FakeDownstream.Behaviour;
import lab.conformance.RawClient;
import lab.wire.RequestReader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The contract, and what this model says of refused clients, of its loops and of blocking them. */
@Timeout(120)
class EventLoopTest extends ContractTest {
  EventLoopTest() {
    super(EventLoop.MODEL, "loop-");
  }

  @Test
  void aRefusedClientThatStaysIsClosed() throws Exception {
    start();
    try (RawClient client = client()) {
      assertThat(client.send("nonsense\r\n\r\n").read().status()).isEqualTo(400);
      // The client keeps its side open.
      await(() -> metric("lab_http_connections_open") == 0);
    }
  }

  /** As much as may be kept unread came while it worked, and is no whole head yet. */
  @Test
  void anUnfinishedHeadOfTheGreatestLengthIsReadOn() throws Exception {
    start("LAB_LOOPS", "1");
    downstream().behave(Behaviour.HOLD);
    try (RawClient client = client()) {
      client.request("GET", "/downstream");
      awaitInFlight("/downstream", 1);
      String begin = "GET /health HTTP/1.1\r\nHost: lab\r\nFiller: ";
      client.send(begin + "x".repeat(RequestReader.MAX_HEAD_BYTES - begin.length()));
      // The only loop reads what was there before it answers who came later.
      assertThat(get("/health").status()).isEqualTo(200);
      downstream().answerHeld(1);
      assertThat(client.read().status()).isEqualTo(200);
      assertThat(client.send("x").rest()).isEqualTo("431 closed");
    }
  }

  @Test
  void connectionsAreDealtOutToAllLoops() throws Exception {
    start("LAB_LOOPS", "3");
    Set<String> threads = new HashSet<>();
    for (int i = 0; i < 6; i++) {
      threads.add(get("/?wait_ms=0").body().replaceFirst(".*\"thread\":\"([^\"]*)\".*", "$1"));
    }
    assertThat(threads).containsExactlyInAnyOrder("loop-1", "loop-2", "loop-3");
  }

  @Test
  void downstreamPlacesAreSharedByAllLoops() throws Exception {
    start("LAB_DOWNSTREAM_CONNECTIONS", "1");
    List<RawClient> clients = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      clients.add(client().send("GET /downstream HTTP/1.1\r\nHost: lab\r\n\r\n".repeat(10)));
    }
    for (RawClient client : clients) {
      for (int i = 0; i < 10; i++) {
        assertThat(client.read().status()).isEqualTo(200);
      }
      client.close();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "spin"})
  void blockingTheLoopMakesWaitsFollowEachOther(String how) throws Exception {
    start("LAB_LOOPS", "1", "LAB_BLOCK_THE_LOOP", how);
    List<RawClient> clients = new ArrayList<>();
    long begun = System.nanoTime();
    for (int i = 0; i < 5; i++) {
      clients.add(client().request("GET", "/?wait_ms=50"));
    }
    for (RawClient client : clients) {
      assertThat(client.read().status()).isEqualTo(200);
      client.close();
    }
    assertThat(System.nanoTime() - begun).isGreaterThanOrEqualTo(5 * 50_000_000L);
  }
}
