package lab.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.io.IOException;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import lab.conformance.RawClient.RawAnswer;
import lab.conformance.Rules.Rule;
import lab.shell.ServerModel;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** HTTP/1.1 by the sections of RFC 9112, and the limits on clients and on their requests. */
abstract class ProtocolTest extends RoutesTest {
  /** Of the server's process, before the first malformed request. */
  private static long descriptorsBefore;

  ProtocolTest(ServerModel model, String threadName) {
    super(model, threadName);
  }

  @AfterAll
  static void forget() {
    descriptorsBefore = 0;
  }

  /**
   * {@code ~} ends a line. {@code £} is the begin of a request, {@code $} too, after which the
   * server is to close; {@code <10000>} is that many letters.
   */
  private static String text(String template) {
    return template
        .replace("$", "£Connection: close~")
        .replace("£", GET)
        .replace("<fields>", ("Filler: " + "x".repeat(1_000) + "~").repeat(100))
        .replace("<10000>", "x".repeat(10_000))
        .replace("<200000>", "x".repeat(200_000))
        .replace("~", "\r\n");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          2.1  | 200 closed         | ~~$~
          2.3  | 431 closed         | $<fields>~
          2.4  | 200 closed         | GET http://lab:8080/health HTTP/1.1~Host: lab:8080~Connection: close~~
          2.5  | 200 200 200 closed | £Content-Length: 10000~~<10000>£Transfer-Encoding: chunked~~3~abc~0~~$~
          2.6  | 200 closed         | $Transfer-Encoding: chunked~~3;a=b~abc~0~A: b~~
          2.7  | 200 200 closed     | £Content-Length: 200000~~<200000>$~
          2.8  | 200 closed or 400 closed | $Content-Length: 2~Content-Length: 2~~ok
          2.10 | 200 closed         | GET /health HTTP/1.0~~
          2.11 | 405 closed         | PUT / HTTP/1.0~Content-Length: 2~Expect: 100-continue~~ok
          2.12 | 400 closed         | NONSENSE~~
          2.13 | 400 closed         | GET /health~~
          2.14 | 400 closed         | $Content-Length: many~~
          2.16 | 200 100 405 closed or 200 405 closed | GET /?wait_ms=50 HTTP/1.1~Host: a~~PUT / HTTP/1.1~Host: a~Connection: close~Content-Length: 2~Expect: 100-continue~~ok
          4.1  | 200 200 closed     | GET /?wait_ms=20 HTTP/1.1~Host: a~~£~GET /hea¶
          """)
  void whatIsSentIsAnswered(String row, String allowed, String sent) throws Exception {
    verifyRow(row, answers(text(sent)), allowed.split(" or ", -1));
  }

  /** All answers to this, and how the connection ends; {@code ¶} at the end is the client's. */
  private String answers(String sent) throws IOException {
    boolean ends = sent.endsWith("¶");
    try (RawClient client = client()) {
      client.trySend(ends ? sent.substring(0, sent.length() - 1) : sent);
      if (ends) {
        client.endOutput();
      }
      return client.rest();
    } catch (IOException e) {
      throw new IOException(sent, e);
    }
  }

  @Test
  @Rule("2.2")
  void aRequestMayComeByteByByte() throws Exception {
    RawClient slow = client();
    RawClient other = client();
    for (String each : text("$~").split("", -1)) {
      slow.send(each);
      assertThat(other.get("/health").status()).isEqualTo(200);
    }
    assertThat(slow.rest()).isEqualTo("200 closed");
  }

  /** None announces the end, which Reactor Netty minds before its turn (2.16). */
  @Test
  @Rule("2.9")
  void pipelinedRequestsAreAnsweredInOrder() throws Exception {
    RawClient client = client();
    client.request("GET", "/?wait_ms=50").request("GET", "/none").request("GET", "/health");
    assertThat(client.next() + client.next() + client.next()).isEqualTo("200404200");
  }

  @Test
  @Rule("1.9")
  void theAnswerToHeadHasALengthAndNoBody() throws Exception {
    RawClient client = client();
    RawAnswer answer = client.request("HEAD", "/health").read();
    boolean hasLength = !answer.headers().getOrDefault("Content-Length", "0").equals("0");
    String how = hasLength ? "with" : "without";
    verify(
        "%d %s length %s".formatted(answer.status(), how, client.send(text("$~")).rest()),
        "405 with length 200 closed");
  }

  @Test
  @Rule("2.15")
  void whoExpectsToContinueIsAnswered() throws Exception {
    RawClient client =
        client().request("PUT", "/", "Content-Length: 2", "Expect: 100-continue", CLOSE);
    String seen = client.next();
    verify(
        seen.equals("100") ? "100 " + client.trySend("ok").rest() : seen, "100 405 closed", "405");
  }

  @Test
  @Rule("2.17")
  void theOldProtocolStaysWhenAsked() throws Exception {
    RawClient client = client().send("GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    RawAnswer answer = client.read();
    String field = answer.headers().getOrDefault("Connection", "nothing");
    client.trySend("GET /health HTTP/1.0\r\n\r\n");
    verify(
        answer.status() + " " + field.toLowerCase(Locale.ROOT) + " " + client.rest(),
        "200 keep-alive 200 closed");
  }

  /**
   * Each is refused, or its connection closed: never a 200, a 500, a crash or a leak. Of the
   * choices in a row, {@code «first·second»}, each is made; {@code §} is a word, and {@code ␣} a
   * blank. The server is to close after {@code $}, so no test waits for what does not come.
   */
  @ParameterizedTest
  @CsvSource(
      delimiter = '¦',
      quoteCharacter = '´',
      textBlock =
          """
          3.1  ¦ refused ¦ $§: a␍§~~
          3.2  ¦ refused ¦ GET /health HTTP/1.1~«␣·␉·␣␣»§: a~Host: lab~Connection: close~~
          3.3  ¦ refused ¦ GET /health «HTTP/1·HTTP/1.10·HTTP/a.b·http/1.1·HTTP 1.1·HTTP/11»«·x»~Host: lab~Connection: close~~
          3.4  ¦ refused ¦ «§·GET /health HTTP/1.1 §·␣/health HTTP/1.1·GET § /health HTTP/1.1»~Host: lab~Connection: close~~
          3.5  ¦ refused ¦ G«(·)·<·@·,·;·/·[·=·{·"·␁»§ /health HTTP/1.1~Host: lab~~$~
          3.6  ¦ refused ¦ GET «/health«<·>·"·{·}·|·^·`·#a·%zz»·/health?«<·>·"·#·%g1»·§·\\§» HTTP/1.1~Host: lab~Connection: close~~
          3.7  ¦ refused ¦ GET /health HTTP/1.1~Connection: close~«·§: a~·Host: lab~Host: lab~·Host: lab~Host: §~·Host: lab §~·Host: lab/§~·Host: §@lab~·Host: lab:§~»~
          3.8  ¦ refused ¦ $«: §·§·§«(·)·<·@·/·[·=·{·"»x: a·§ §: a»~~
          3.9  ¦ refused ¦ $«Content-Length·Host·§»«␣·␉»: «0·a»~~
          3.10 ¦ refused ¦ $§: a␀§~~
          3.11 ¦ refused or [200 closed] ¦ $§: a~␣§~~
          3.12 ¦ refused ¦ $«Content-Length: «0·5»~Transfer-Encoding: chunked·Transfer-Encoding: chunked~Content-Length: «0·5»»~~0~~
          3.13 ¦ refused ¦ «$·$Transfer-Encoding: chunked~»Transfer-Encoding: «identity·§·chunked, gzip·chunked, chunked·chunkedx»~~0~~
          3.14 ¦ refused ¦ GET /health HTTP/1.0~Connection: close~Transfer-Encoding: chunked~~0~~
          3.15 ¦ refused ¦ $Content-Length: «-5·+5·0x5·5,6·5 5·5e0·§·99999999999999999999·5~Content-Length: 6»~~hello!
          3.16 ¦ refused ¦ $Transfer-Encoding: chunked~~«g·-1·0x1··1g·1-·1.·fffffffffffffffff»~a~0~~
          3.17 ¦ refused ¦ $Transfer-Encoding: chunked~~1~a§~0~~
          3.18 ¦ refused ¦ «$§: a·GET /health HTTP/1.1~Host: l·GET /health HTT·GET /health HTTP/1.1·G·GET /health HTTP/1.1~Host: lab~§»¶
          """)
  void aMalformedRequestIsRefused(String row, String allowed, String template) throws Exception {
    // The words are the same for every lane and every run.
    Random random = new Random(9112);
    if (descriptorsBefore == 0) {
      await(this::isWell);
      descriptorsBefore = descriptors();
    }
    Set<String> outcomes = new TreeSet<>();
    for (String choice : Set.copyOf(choices(template))) {
      for (int i = 0; i < 2; i++) {
        String request =
            text(
                choice
                    .replace('␣', ' ')
                    .replace('␉', '\t')
                    .replace('␍', '\r')
                    .replace('␀', '\0')
                    .replace('␁', '\1')
                    .replace("§", word(random)));
        String outcome = answers(request);
        boolean isRefused = outcome.matches("closed|(400|501|505) closed");
        outcomes.add(isRefused ? "refused" : outcome);
      }
    }
    assertThat(isWell()).isTrue();
    String seen = outcomes.equals(Set.of("refused")) ? "refused" : outcomes.toString();
    verifyRow(row, seen, allowed.split(" or ", -1));
    // Over all rows: a leak of one may be of few. A JVM may open some for a class or a log.
    await(() -> descriptors() <= descriptorsBefore + 10);
  }

  /** The innermost choice is made first. */
  private static List<String> choices(String template) {
    int end = template.indexOf('»');
    if (end < 0) {
      return List.of(template);
    }
    int begin = template.lastIndexOf('«', end);
    return Stream.of(template.substring(begin + 1, end).split("·", -1))
        .map(each -> template.substring(0, begin) + each + template.substring(end + 1))
        .flatMap(each -> choices(each).stream())
        .toList();
  }

  private static String word(Random random) {
    return "X" + Integer.toString(random.nextInt(100, 1_000_000), 36);
  }

  private long descriptors() {
    return (long) attribute("java.lang:type=OperatingSystem", "OpenFileDescriptorCount");
  }

  @Test
  @Rule("3.19")
  void aMalformedRequestIsCounted() throws Exception {
    double before = requests("client_error", "none");
    for (String request : List.of("nonsense\r\n\r\n", text("$Host: lab~~"), text("$<fields>~"))) {
      var _ = client().trySend(request).rest();
    }
    verify("%.0f counted".formatted(requests("client_error", "none") - before), "3 counted");
  }

  @Test
  @Rule("4.2")
  void aClientThatSendsMoreThanItsLastRequestIsReadOn() throws Exception {
    assumeChosen(CLIENT_LIMITS);
    // Answered at once, and when all that may be read in advance has been.
    Set<String> seen = new TreeSet<>();
    for (String target : List.of("/health", "/?wait_ms=100")) {
      String last = text("$~").replace("/health", target);
      try {
        RawClient client = client().send(last + GET.repeat(3_000));
        seen.add(client.next() + (client.isClosedByServer() ? " closed" : " and more"));
      } catch (SocketException e) {
        seen.add("reset");
      }
    }
    verify(String.join(", ", seen), "200 closed");
  }

  @Test
  @Rule("4.3")
  void answersWaitForAClientThatDoesNotRead() throws Exception {
    RawClient slow = client(4096);
    RawClient other = client();
    // So many answers that the kernel does not hold them all: the server has to keep some back.
    RawAnswer first = slow.get("/metrics");
    assertThat(first.status()).isEqualTo(200);
    int requests = Math.ceilDiv(6_000_000, first.body().length());
    Thread sender = slow.sendOften(requests, GET_METRICS);
    for (int i = 0; i < 20; i++) {
      assertThat(other.get("/health").status()).isEqualTo(200);
    }
    for (int i = 0; i < requests; i++) {
      assertThat(slow.read().status()).isEqualTo(200);
    }
    sender.join();
  }

  @Test
  @Rule("4.4")
  void aClientThatLeavesLeavesNothing() throws Exception {
    turn("downstream_connections", 2);
    List<RawClient> leaving = heldClients(4);
    // One closes and one resets of those that are called for, and of those that wait for a place.
    leaving.get(0).close();
    leaving.get(1).reset();
    leaving.get(2).close();
    leaving.get(3).reset();
    turn("downstream_connections", 20_000);
    downstream().answerHeld(4);
    awaitInFlight("/downstream", 0);
    await(() -> leased() == 0 && pending() == 0);
    assertThat(isWell()).isTrue();
  }

  @Test
  @Rule("4.5")
  void anAnswerThatTheClientCannotReadIsCountedAsAborted() throws Exception {
    double before = requests("aborted", "/downstream");
    heldClient().reset();
    downstream().answerHeld(1);
    awaitInFlight("/downstream", 0);
    verify(requests("aborted", "/downstream") == before + 1 ? "aborted" : "ok", "aborted");
  }

  @Test
  @Rule("6.1")
  void placesGoToTheCallThatHasWaitedLongest() throws Exception {
    String waited = "lab_downstream_call_seconds_count{phase=\"pending\"}";
    String called = "lab_downstream_call_seconds_count{phase=\"call\"}";
    turn("downstream_connections", 1);
    List<RawClient> held = heldClients(6);
    double timeoutsBefore = calls("timeout");
    double waitedBefore = metric(waited);
    double calledBefore = metric(called);
    turn("downstream_timeout_ms", 100);
    assertThat(get("/downstream").status()).isEqualTo(504);
    // It waited, and called no downstream.
    assertThat(calls("timeout") - timeoutsBefore).isEqualTo(1);
    assertThat(metric(waited) - waitedBefore).isEqualTo(1);
    assertThat(metric(called)).isEqualTo(calledBefore);
    // A place passes over it.
    turn("downstream_timeout_ms", HELD_MS);
    held.add(client().request("GET", "/downstream"));
    await(() -> pending() == 6);
    for (RawClient next : held) {
      downstream().answerHeld(1);
      assertThat(next.read().status()).isEqualTo(200);
    }
  }

  @Test
  @Rule("6.2")
  void beyondItsBoundTheQueueIs503() throws Exception {
    if (!has(readBack(), "queue_bound")) {
      verify("unbounded", "503, then 200");
      return;
    }
    boolean pool = chooses(WORKER_POOL);
    double queued = seconds("queue", "/downstream");
    double rejected = requests("rejected", "/health");
    turn("queue_bound", pool ? 1 : 2);
    if (pool) {
      useOneWorker();
    }
    RawClient first = heldClient();
    await(() -> !pool || mbean("WorkerPool", "Active") == 1);
    RawClient second = client().request("GET", "/downstream");
    await(() -> pool ? mbean("WorkerPool", "QueueDepth") == 1 : leased() == 2);
    RawClient third = client();
    int refused = third.get("/health").status();
    assertThat(client().send("GET /health HTTP/1.0\r\n\r\n").rest()).isEqualTo("503 closed");
    downstream().answerHeld(2);
    assertThat(first.read().status()).isEqualTo(200);
    assertThat(second.read().status()).isEqualTo(200);
    awaitInFlight("/downstream", 0);
    verify(refused + ", then " + third.trySend(GET + "\r\n").next(), "503, then 200");
    await(() -> requests("rejected", "/health") == rejected + 2);
    // The wait for a worker is a phase: what was not in the queue was in service.
    double queue = seconds("queue", "/downstream");
    assertThat(queue + seconds("service", "/downstream"))
        .isCloseTo(seconds("total", "/downstream"), within(1e-6));
    if (pool) {
      assertThat(queue).isGreaterThan(queued);
    }
  }

  /** A thread that is to end may take a request until it has ended. */
  private void useOneWorker() throws Exception {
    turn("pool_size", 1);
    await(
        () ->
            Thread.getAllStackTraces().keySet().stream()
                    .filter(thread -> thread.getName().startsWith(threadName()))
                    .count()
                < 5);
  }

  @Test
  @Rule("6.3")
  void idleClientsThatLeaveTakeNoPlace() throws Exception {
    assumeChosen(WORKER_POOL);
    boolean deviates = !deviation().isEmpty();
    int bound = 10;
    turn("queue_bound", bound);
    useOneWorker();
    List<RawClient> crowd = new ArrayList<>();
    for (int i = 0; i < bound; i++) {
      crowd.add(client());
      assertThat(crowd.getLast().get("/health").status()).isEqualTo(200);
    }
    RawClient first = heldClient();
    double before = requests("rejected", "/health");
    for (RawClient idle : crowd) {
      idle.endOutput();
    }
    if (deviates) {
      await(() -> mbean("WorkerPool", "QueueDepth") == bound);
    } else {
      for (RawClient idle : crowd) {
        assertThat(idle.isClosedByServer()).isTrue();
      }
    }
    RawClient next = client().request("GET", "/health");
    await(
        () ->
            deviates
                ? requests("rejected", "/health") > before
                : mbean("WorkerPool", "QueueDepth") == 1);
    downstream().answerHeld(1);
    assertThat(first.read().status()).isEqualTo(200);
    verify(next.next(), "200");
  }

  @Test
  @Rule("6.4")
  void aRefusalTakesNoPlace() throws Exception {
    assumeFalse(chooses(WORKER_POOL) || !has(readBack(), "queue_bound"), "no bound but a pool's");
    turn("queue_bound", 1);
    RawClient first = heldClient();
    RawClient deaf = client(4096);
    Thread asking = deaf.sendOften(Integer.MAX_VALUE, GET + "\r\n");
    // Up to the first refusal that the kernel has no room for: none more in 20 looks.
    List<Double> looks = new ArrayList<>();
    await(
        () -> {
          looks.addFirst(requests("rejected", "/health"));
          return looks.size() > 20
              && looks.getFirst() > looks.getLast()
              && looks.getFirst().equals(looks.get(20));
        });
    downstream().answerHeld(1);
    assertThat(first.read().status()).isEqualTo(200);
    await(this::isWell);
    deaf.reset();
    asking.join();
  }
}
