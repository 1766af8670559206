package lab.conformance;

import static lab.conformance.FakeDownstream.BODY;
import static lab.conformance.FakeDownstream.UNANSWERED;
import static lab.conformance.FakeDownstream.ok;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import lab.conformance.FakeDownstream.Behaviour;
import lab.conformance.RawClient.RawAnswer;
import lab.conformance.Rules.Rule;
import lab.shell.ServerModel;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What a server makes of its downstream, by the sections of RFC 9110 and 9112. */
abstract class DownstreamTest extends ProtocolTest {
  /** 1 MiB: as long as a body may be. */
  private static final String LONG_BODY = "0123456789abcdef".repeat(1 << 16);

  private static final String TINY_CHUNKS = LONG_BODY.replaceAll("\\w", "1\r\n$0\r\n");

  DownstreamTest(ServerModel model, String threadName) {
    super(model, threadName);
  }

  /**
   * {@code ~} ends a line, and {@code !} the connection. {@code &} is an answer of 200 with the
   * body that the caller is to get.
   */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          5.1  | 200 | HTTP/1.1 200 OK~Transfer-Encoding: chunked~~7~{"servi~18;a=1~ce":"fake","delay_ms":0}~0~~
          5.2  | 200 | HTTP/1.1 200 OK~Connection: close~~{"service":"fake","delay_ms":0}!
          5.3  | 200 | &!
          5.4  | 200 | HTTP/1.1 100 Continue~~HTTP/1.1 103 Early Hints~Link: </a>~~&
          5.5  | 502 | <200 hints>&
          5.6  | 502 | HTTP/1.1 101 Switching Protocols~Upgrade: lab~~
          5.7  | 502 | HTTP/1.1 204 No Content~~
          5.8  | 502 | HTTP/1.1 304 Not Modified~Content-Length: 30~~
          5.9  | 502 | HTTP/1.1 500 Broken~Content-Length: 2~~{}
          5.10 | 502 | ``
          5.11 | 502 | HTTP/1.1 200 OK~Content-Length: 31~~{"service":"fake"!
          5.12 | 502 or 200 | HTTP/1.0 200 OK~Content-Length: 31~~{"service":"fake","delay_ms":0}
          5.13 | 502 | HTTP/2.0 200 OK~Content-Length: 31~~{"service":"fake","delay_ms":0}
          5.14 | 200 | HTTP/1.1 200 ~Content-Length: 31~~{"service":"fake","delay_ms":0}
          5.15 | 502 | HTTP/1.1 2000 OK~Content-Length: 31~~{"service":"fake","delay_ms":0}
          5.16 | 502 | HTTP/1.1 20 OK~Content-Length: 31~~{"service":"fake","delay_ms":0}
          5.17 | 200 | HTTP/1.1 200 OK~Transfer-Encoding: chunked~~<1 MiB in chunks of a byte>0~~
          5.18 | 502 | <1 MiB and a byte>
          5.19 | 200 | &surplus
          5.20 | 200 | &HTTP/1.1 200 OK~Content-Length: 21~~{"service":"another"}
          """)
  void anAnswerIsTakenForWhatItIs(String row, String statuses, String answer) throws Exception {
    boolean isLong = answer.contains("in chunks of a byte");
    turn("downstream_timeout_ms", isLong ? PATIENCE.toMillis() : 5_000);
    long before = allocatedBytes();
    double errors = calls("error");
    String text =
        answer
            .replace("~", "\r\n")
            .replace("<200 hints>", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(200))
            .replace("<1 MiB in chunks of a byte>", TINY_CHUNKS)
            .replace("<1 MiB and a byte>", ok(LONG_BODY + "!"))
            .replace("&", ok(BODY));
    boolean closes = answer.endsWith("!");
    String then = "nothing";
    // The connections of one client are of one loop, whose second call may find the first one's.
    RawClient client = client();
    try {
      downstream().answerWith(closes ? text.substring(0, text.length() - 1) : text, closes);
      String seen = call(client, isLong ? LONG_BODY : BODY);
      errors += seen.equals("502") ? 1 : 0;
      assertThat(calls("error")).isEqualTo(errors);
      downstream().behave(Behaviour.ANSWER);
      then = call(client, BODY);
      String allowed = statuses.replace(" or ", ", then 200 or ") + ", then 200";
      verifyRow(row, seen + ", then " + then, allowed.split(" or ", -1));
    } finally {
      if (!then.equals("200")) {
        renewConnections();
      }
    }
    // To copy all of the body for each of its chunks would be half a terabyte.
    assertThat(allocatedBytes() - before).isLessThan(64L << 30);
  }

  /** The status of a call of the downstream, and whether its body is another than it should be. */
  private static String call(RawClient client, String body) throws IOException {
    RawAnswer answer = client.get("/downstream");
    boolean another = answer.status() == 200 && !answer.body().equals(body);
    return answer.status() + (another ? " of another body" : "");
  }

  /** A client that is out of step now must not be so for ever. */
  private void renewConnections() throws Exception {
    downstream().behave(Behaviour.ANSWER);
    downstream().hangUp();
    await(
        () -> {
          int before = downstream().connections();
          return call(client(), BODY).equals("200") && downstream().connections() > before;
        });
  }

  /** What all threads of the server's JVM have allocated since it started. */
  private long allocatedBytes() {
    return (long) attribute("java.lang:type=Threading", "TotalThreadAllocatedBytes");
  }

  /** Of the sizes that {@code make jmh} compares, both ways. */
  @Test
  @Rule("5.26")
  void longerHeadsAndBodiesPassUnharmed() throws Exception {
    String body = LONG_BODY.substring(0, 16_384);
    String fields =
        "Filler: %s\r\nContent-Length: 16384\r\n\r\n%s".formatted("x".repeat(1_450), body);
    downstream().answerWith("HTTP/1.1 200 OK\r\n" + fields, false);
    RawClient client = client();
    String requests = ("GET /downstream HTTP/1.1\r\nHost: lab\r\n" + fields).repeat(2);
    for (int at = 0; at < requests.length(); at += 1_000) {
      client.send(requests.substring(at, Math.min(at + 1_000, requests.length())));
    }
    assertThat(client.read().body()).isEqualTo(body);
    assertThat(client.read().body()).isEqualTo(body);
  }

  @Test
  @Rule("5.21")
  void aCallThatIsRetriedIsCounted() throws Exception {
    String metric = "lab_downstream_retries_total";
    renewConnections();
    RawClient client = client();
    // Leaves a connection that its next call takes, on the same loop.
    assertThat(client.get("/downstream").status()).isEqualTo(200);
    double before = metric(metric);
    downstream().behave(Behaviour.ANSWER_ONCE);
    int status = client.get("/downstream").status();
    boolean isCounted = allMetrics().contains(metric + " ");
    verify(
        status + (isCounted ? " %.0f counted".formatted(metric(metric) - before) : " no metric"),
        "200 1 counted");
  }

  @Test
  @Rule("5.22")
  void anAnswerThatTricklesIsTooLate() throws Exception {
    downstream().behave(Behaviour.TRICKLE);
    turn("downstream_timeout_ms", 600);
    verify(String.valueOf(get("/downstream").status()), "504");
  }

  @Test
  @Rule("5.23")
  void aLateCallIs504AndItsConnectionIsClosed() throws Exception {
    downstream().answerWith(ok(BODY).substring(0, ok(BODY).length() - BODY.length() / 2), false);
    turn("downstream_timeout_ms", 500);
    int ended = downstream().ended();
    double timeouts = calls("timeout");
    assertThat(get("/downstream").status()).isEqualTo(504);
    assertThat(calls("timeout")).isEqualTo(timeouts + 1);
    await(() -> downstream().ended() == ended + 1);
  }

  /**
   * Many at once, some of them never answered: those end, in time, and no other call does. The
   * others go on until the last of those has ended. On a slow machine one may be very late, but not
   * half of them by as much again; and where an answered call was late, too, all have more time.
   */
  @Test
  @Rule("5.24")
  @Timeout(120)
  void deadlinesHoldUnderLoad() throws Exception {
    List<Duration> late = List.of();
    Duration deadline = Duration.ZERO;
    double aborted = requests("aborted", "/downstream");
    for (int ms : new int[] {500, 4_000}) {
      if (late.size() != UNANSWERED || late.getFirst().compareTo(deadline) < 0) {
        deadline = Duration.ofMillis(ms);
        late = lateCalls(deadline);
      }
    }
    // No call was late that the downstream had answered.
    assertThat(late).hasSize(UNANSWERED);
    assertThat(late.getFirst()).isGreaterThanOrEqualTo(deadline);
    assertThat(late.get(UNANSWERED / 2)).isLessThan(deadline.multipliedBy(2));
    // Each answer was read.
    awaitInFlight("/downstream", 0);
    assertThat(requests("aborted", "/downstream")).isEqualTo(aborted);
  }

  /** How long the late ones of many calls took, the quickest first; zero for what is no 504. */
  private List<Duration> lateCalls(Duration deadline) throws Exception {
    downstream().behave(Behaviour.ANSWER_MOST);
    turn("downstream_timeout_ms", deadline.toMillis());
    int ended = downstream().ended() + UNANSWERED;
    Callable<List<Duration>> caller =
        () -> {
          List<Duration> late = new ArrayList<>();
          RawClient client = client();
          while (downstream().ended() < ended) {
            long begun = System.nanoTime();
            String seen = call(client, BODY);
            if (!seen.equals("200")) {
              boolean isLate = seen.equals("504");
              late.add(isLate ? Duration.ofNanos(System.nanoTime() - begun) : Duration.ZERO);
            }
          }
          return late;
        };
    return atOnce(2 * UNANSWERED, caller).stream().flatMap(List::stream).sorted().toList();
  }
}
