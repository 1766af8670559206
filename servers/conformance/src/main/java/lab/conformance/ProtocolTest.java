package lab.conformance;

import static java.util.Objects.requireNonNull;
import static java.util.stream.Collectors.joining;
import static lab.conformance.ContractTest.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.management.UnixOperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.SocketException;
import java.time.Duration;
import java.time.Instant;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import javax.management.JMException;
import javax.management.ObjectName;
import lab.conformance.FakeDownstream.Behaviour;
import lab.conformance.RawClient.RawAnswer;
import lab.shell.ModelContext;
import lab.shell.ServerModel;
import lab.spec.BadValueException;
import lab.spec.Route;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * HTTP/1.1 as every model speaks it, by the sections of RFC 9112, and what becomes of a request
 * whose client, downstream or work fails. A model that does otherwise says so in {@link
 * Deviations}: the name of the test, what happens instead, and why; what is said there must happen.
 *
 * <p>All tests share one server with two event loops or fronts, where there are any, and a
 * downstream that may hold its answers as long as it likes. After each of them nothing may be left
 * of it.
 */
abstract class ProtocolTest {
  private static final String GET = "GET /health HTTP/1.1\r\nHost: lab\r\n";

  /** For requests made at random, the same for every model and every run. */
  private static final long SEED = 9112;

  private static final int OF_EACH_KIND = 30;

  /** Descriptors that a JVM may open by itself meanwhile, for a class or a log. */
  private static final int SPARE_DESCRIPTORS = 10;

  private static @Nullable FakeDownstream sharedDownstream;
  private static @Nullable RunningServer sharedServer;
  private static @Nullable ModelContext context;

  /** Of the server's process, before the first request that is none. */
  private static long descriptorsBefore;

  /** What making {@code /metrics} does before anything else. */
  private static volatile Runnable bug = () -> {};

  private FakeDownstream downstream;
  private RunningServer server;
  private Deviations deviations;

  abstract ServerModel model();

  abstract Launcher launcher();

  /** As of {@link ContractTest#settings}. */
  abstract Map<String, String> settings();

  /** As of {@link ContractTest.Trait#LIMITS_CLIENTS}. */
  abstract boolean limitsClients();

  @BeforeEach
  void useTheServer() throws IOException, BadValueException {
    if (sharedServer == null) {
      sharedDownstream = new FakeDownstream();
      Map<String, String> environment = new HashMap<>(settings());
      environment.put("LAB_HTTP_PORT", "0");
      environment.put("LAB_MANAGEMENT_PORT", "0");
      environment.put("LAB_DOWNSTREAM_URL", sharedDownstream.url());
      environment.put("LAB_TOKEN_SUMS", Management.tokenSums(model().name()));
      environment.put("LAB_DOWNSTREAM_TIMEOUT_MS", ContractTest.HELD_MS);
      environment.put("LAB_DOWNSTREAM_KEEP_IDLE_S", "1");
      environment.put("LAB_LOOPS", "2");
      environment.put("LAB_FRONTS", "2");
      sharedServer = breakable(launcher()).start(environment);
    }
    server = sharedServer;
    downstream = requireNonNull(sharedDownstream);
    downstream.behave(Behaviour.ANSWER);
    deviations = Deviations.of(model().name());
  }

  @AfterEach
  void nothingIsLeft() throws Exception {
    bug = () -> {};
    await(() -> inFlight() == 0 && leased() == 0);
  }

  @AfterAll
  static void stopTheServer() throws IOException {
    if (sharedServer != null) {
      sharedServer.close();
      requireNonNull(sharedDownstream).close();
    }
    sharedServer = null;
    sharedDownstream = null;
    context = null;
    descriptorsBefore = 0;
  }

  // --- requests as they may be ----------------------------------------------------------------

  /** 2.2: servers should pass over blank lines before a request. */
  @Test
  void blankLinesBeforeARequestArePassedOver() throws Exception {
    try (RawClient client = client()) {
      client.send("\r\n\r\n" + GET + "Connection: close\r\n\r\n");
      verify("blankLinesBeforeARequestArePassedOver", client.rest(), "200 closed");
    }
  }

  /** 2.2: TCP keeps no borders. */
  @Test
  void aRequestMayComeByteByByte() throws Exception {
    try (RawClient client = client()) {
      for (char each : (GET + "Connection: close\r\n\r\n").toCharArray()) {
        client.send(String.valueOf(each));
      }
      verify("aRequestMayComeByteByByte", client.rest(), "200 closed");
    }
  }

  /** 3: whatever is too long is refused, and the client can read so. */
  @Test
  void aHeadThatIsTooLongIs431() throws Exception {
    try (RawClient client = client()) {
      String filler = ("Filler: " + "x".repeat(1_000) + "\r\n").repeat(100);
      client.trySend(GET + filler + "Connection: close\r\n\r\n");
      verify("aHeadThatIsTooLongIs431", client.rest(), "431 closed");
    }
  }

  /** 3.2.2: a server must understand a target with scheme and host. */
  @Test
  void aTargetMayBeAbsolute() throws Exception {
    try (RawClient client = client()) {
      client.send(
          "GET http://lab:8080/health HTTP/1.1\r\nHost: lab:8080\r\nConnection: close\r\n\r\n");
      verify("aTargetMayBeAbsolute", client.rest(), "200 closed");
    }
  }

  /** 6.2, 7.1: bodies that nobody wants are read up to the next request. */
  @Test
  void bodiesArePassedOver() throws Exception {
    try (RawClient client = client()) {
      client.trySend(GET + "Content-Length: 10000\r\n\r\n" + "x".repeat(10_000));
      client.trySend(GET + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
      client.trySend(GET + "Connection: close\r\n\r\n");
      verify("bodiesArePassedOver", client.rest(), "200 200 200 closed");
    }
  }

  /** 7.1.1, 7.1.2: with what chunks may have besides: extensions, and fields after the last. */
  @Test
  void trailersArePassedOver() throws Exception {
    try (RawClient client = client()) {
      client.send(
          GET
              + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
              + "3;a=b\r\nabc\r\n0\r\nA: b\r\n\r\n");
      verify("trailersArePassedOver", client.rest(), "200 closed");
    }
  }

  /** 6.2: so are those that are longer than anybody's buffer, as long as they are no attack. */
  @Test
  void longBodiesArePassedOver() throws Exception {
    try (RawClient client = client()) {
      client.trySend(GET + "Content-Length: 200000\r\n\r\n" + "x".repeat(200_000));
      client.trySend(GET + "Connection: close\r\n\r\n");
      verify("longBodiesArePassedOver", client.rest(), "200 200 closed");
    }
  }

  /** 6.3: the same length twice may be refused or taken for one. */
  @Test
  void theSameLengthTwiceIsOneLengthOrNone() throws Exception {
    try (RawClient client = client()) {
      String length = "Content-Length: 2\r\n";
      client.send(GET + "Connection: close\r\n" + length + length + "\r\nok");
      verify("theSameLengthTwiceIsOneLengthOrNone", client.rest(), "200 closed", "400 closed");
    }
  }

  /** RFC 9110 6.6.1: a server that has a clock says when it answers. */
  @Test
  void answersSayWhen() throws Exception {
    String date = get("/health").headers().get("Date");
    String said = "no date";
    if (date != null) {
      Instant when = Instant.from(DateTimeFormatter.RFC_1123_DATE_TIME.parse(date));
      assertThat(when).isCloseTo(Instant.now(), within(1, ChronoUnit.MINUTES));
      said = "a date";
    }
    verify("answersSayWhen", said, "a date");
  }

  /** Lanes on one wire send the same bytes: who compares models compares no heads. */
  @Test
  void answersAreTheSameBytes() throws Exception {
    String body = "{\"status\":\"up\",\"model\":\"%s\"}".formatted(model().name());
    String expected =
        """
        HTTP/1.1 200 OK
        Content-Type: application/json
        Lab-Model: %s
        Date: some day
        Content-Length: %d
        Connection: close

        %s\
        """
            .formatted(model().name(), body.length(), body);
    try (RawClient client = client()) {
      String seen = client.send(GET + "Connection: close\r\n\r\n").text();
      String dated = seen.replaceFirst("Date: .{29}\r\n", "Date: some day\r\n");
      verify(
          "answersAreTheSameBytes",
          dated.equals(expected.replace("\n", "\r\n")) ? "the same" : "others",
          "the same");
    }
  }

  /** RFC 9110 9.3.2: the answer to HEAD has no body, but the length that the body would have. */
  @Test
  void theAnswerToHeadHasALengthAndNoBody() throws Exception {
    try (RawClient client = client()) {
      RawAnswer answer = client.request("HEAD", "/health").read("HEAD");
      boolean hasLength = !answer.headers().getOrDefault("Content-Length", "0").equals("0");
      client.send(GET + "Connection: close\r\n\r\n");
      verify(
          "theAnswerToHeadHasALengthAndNoBody",
          answer.status() + (hasLength ? " with" : " without") + " length " + client.rest(),
          "405 with length 200 closed");
    }
  }

  /**
   * RFC 9110 10.1.1: a client that waits is told to go on, or at once what it would be told then.
   */
  @Test
  void aClientThatWaitsToBeToldToGoOnIsTold() throws Exception {
    try (RawClient client = client()) {
      String close = "Connection: close";
      client.request("PUT", "/", "Content-Length: 2", "Expect: 100-continue", close);
      String seen = client.next();
      verify(
          "aClientThatWaitsToBeToldToGoOnIsTold",
          seen.equals("100") ? seen + " " + client.trySend("ok").rest() : seen,
          "100 405 closed",
          "405");
    }
  }

  /** RFC 9110 10.1.1: whoever speaks HTTP/1.0 is not told, and would not understand it. */
  @Test
  void theOldProtocolIsNotToldToGoOn() throws Exception {
    try (RawClient client = client()) {
      client.send("PUT / HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
      verify("theOldProtocolIsNotToldToGoOn", client.trySend("ok").rest(), "405 closed");
    }
  }

  /** 9.3: what was asked first is answered first, {@code 100 Continue} included. */
  @Test
  void toldToGoOnIsWhoeverHasItsTurn() throws Exception {
    try (RawClient client = client()) {
      client.request("GET", "/?wait_ms=50");
      String close = "Connection: close";
      client.request("PUT", "/", "Content-Length: 2", "Expect: 100-continue", close);
      String seen = client.next() + " " + client.next();
      verify(
          "toldToGoOnIsWhoeverHasItsTurn",
          seen.equals("200 100") ? seen + " " + client.trySend("ok").rest() : seen,
          "200 100 405 closed",
          "200 405");
    }
  }

  // --- connections ----------------------------------------------------------------------------

  /** 9.3: in HTTP/1.0 a connection ends with its answer. */
  @Test
  void theOldProtocolCloses() throws Exception {
    try (RawClient client = client()) {
      client.send("GET /health HTTP/1.0\r\n\r\n");
      verify("theOldProtocolCloses", client.rest(), "200 closed");
    }
  }

  /** 9.3: unless the client asks to keep it, and is told that it is kept. */
  @Test
  void theOldProtocolStaysWhenAsked() throws Exception {
    try (RawClient client = client()) {
      client.send("GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
      RawAnswer answer = client.read();
      String told = answer.headers().getOrDefault("Connection", "nothing");
      client.trySend("GET /health HTTP/1.0\r\n\r\n");
      verify(
          "theOldProtocolStaysWhenAsked",
          answer.status() + " " + told.toLowerCase(Locale.ROOT) + " " + client.rest(),
          "200 keep-alive 200 closed");
    }
  }

  /** 9.6: a client that has said all it has to say still gets its answers. */
  @Test
  void aHalfClosedClientGetsItsAnswers() throws Exception {
    try (RawClient client = client()) {
      client.request("GET", "/?wait_ms=20").send(GET + "\r\nGET /hea");
      client.endOutput();
      verify("aHalfClosedClientGetsItsAnswers", client.rest(), "200 200 closed");
    }
  }

  /** 9.6: to be closed with input unread would be a reset, and might cost it the last answer. */
  @Test
  void aClientThatSaysMoreThanItsLastRequestIsHeardOut() throws Exception {
    assumeTrue(limitsClients(), "a framework's server");
    // Answered at once, and when all that may be read in advance has been.
    Set<String> seen = new TreeSet<>();
    for (String target : List.of("/health", "/?wait_ms=100")) {
      String last = "GET " + target + " HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n";
      try (RawClient client = client()) {
        String answer = client.send(last + GET.repeat(3_000)).next();
        seen.add(answer + (client.isClosedByServer() ? " closed" : " and more"));
      } catch (SocketException e) {
        seen.add("reset");
      }
    }
    verify(
        "aClientThatSaysMoreThanItsLastRequestIsHeardOut", String.join(", ", seen), "200 closed");
  }

  /** 9.3.2: answers wait for a client that does not read; nobody else waits with it. */
  @Test
  void answersWaitForAClientThatDoesNotRead() throws Exception {
    try (RawClient slow = new RawClient(server.httpPort(), 4096);
        RawClient other = client()) {
      // So many answers that the kernel does not hold them all: the server has to keep some back.
      RawAnswer first = slow.get("/metrics");
      assertThat(first.status()).isEqualTo(200);
      int requests = Math.ceilDiv(6_000_000, first.body().length());
      Thread sender = Thread.ofVirtual().start(() -> askForMetrics(slow, requests));
      for (int i = 0; i < 20; i++) {
        assertThat(other.get("/health").status()).isEqualTo(200);
      }
      int answered = 0;
      while (answered < requests && slow.read().status() == 200) {
        answered++;
      }
      // Before the sender is waited for: nobody reads any more.
      assertThat(answered).isEqualTo(requests);
      sender.join();
    }
  }

  /** 9.5: a client may leave at any time; its request ends, and with it the call made for it. */
  @Test
  void ofAClientThatLeavesNothingIsLeft() throws Exception {
    downstream.behave(Behaviour.HOLD);
    turn("{\"downstream_connections\": 2}");
    List<RawClient> leaving = new ArrayList<>();
    for (int i = 1; i <= 4; i++) {
      RawClient client = client();
      leaving.add(client.request("GET", "/downstream"));
      int asked = i;
      await(() -> leased() + pending() == asked);
    }
    // One closes and one resets of those that are called for, and of those that wait for a place.
    leaving.get(0).close();
    leaving.get(1).reset();
    leaving.get(2).close();
    leaving.get(3).reset();
    turn("{\"downstream_connections\": 20000}");
    downstream.answerHeld(4);
    await(() -> inFlight() == 0 && leased() == 0 && pending() == 0);
    // Whoever of them was not called for any more has left an answer over.
    downstream.forgetHeld();
    isWell();
  }

  // --- the downstream -------------------------------------------------------------------------

  /** Nobody keeps for ever what nobody uses. */
  @Test
  void idleDownstreamConnectionsAreClosed() throws Exception {
    String rule = "idleDownstreamConnectionsAreClosed";
    downstream.behave(Behaviour.ANSWER_AND_WATCH);
    int before = downstream.left();
    assertThat(get("/downstream").status()).isEqualTo(200);
    // Whoever keeps it is asked no longer than twice the time. No client's own time ends before 20
    // s.
    long atMost = deviations.declares(rule) ? 2 : 20;
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(atMost);
    while (downstream.left() == before && System.nanoTime() < end) {
      Thread.sleep(20);
    }
    verify(rule, downstream.left() == before ? "kept" : "closed", "closed");
    // Whoever does not obey the setting says so.
    assertThat(ContractTest.management(server).get("/settings"))
        .contains("\"downstream_keep_idle_s\":" + (deviations.declares(rule) ? "null" : "1"));
  }

  /** One deadline holds for connecting and all that is read, however often there is something. */
  @Test
  void anAnswerThatTricklesIsTooLate() throws Exception {
    downstream.behave(Behaviour.TRICKLE);
    turn("{\"downstream_timeout_ms\": 1000}");
    try {
      int status = get("/downstream").status();
      verify("anAnswerThatTricklesIsTooLate", String.valueOf(status), "504");
    } finally {
      turn("{\"downstream_timeout_ms\": " + ContractTest.HELD_MS + "}");
    }
  }

  /** RFC 9112 2 to 6, RFC 9110 15: what the downstream says is taken for what it is, no more. */
  @ParameterizedTest
  @EnumSource
  void theDownstreamIsUnderstood(OddAnswer kind) throws Exception {
    turn("{\"downstream_timeout_ms\": 10000}");
    // One connection is of one loop, whose second call may find the first one's connection.
    try (RawClient client = client()) {
      downstream.answerWith(kind.answer());
      String seen = downstreamSays(client);
      downstream.behave(Behaviour.ANSWER);
      verify(kind.name(), seen + ", then " + downstreamSays(client), kind.allowed());
    } finally {
      // A client that is out of step now must not be so for ever.
      downstream.behave(Behaviour.ANSWER);
      downstream.hangUp();
      await(this::isAnsweredOverANewConnection);
      turn("{\"downstream_timeout_ms\": " + ContractTest.HELD_MS + "}");
    }
  }

  /**
   * What is not answered in time is broken off: its connection is no longer one of those there may
   * be.
   */
  @Test
  void ofACallThatIsLateNoConnectionIsLeft() throws Exception {
    downstream.behave(Behaviour.STALL_IN_BODY);
    turn("{\"downstream_timeout_ms\": 500}");
    try {
      int before = downstream.ended();
      assertThat(get("/downstream").status()).isEqualTo(504);
      await(() -> downstream.ended() == before + 1);
    } finally {
      turn("{\"downstream_timeout_ms\": " + ContractTest.HELD_MS + "}");
    }
  }

  /**
   * Many at once, some of them never answered: those end, in time, and no other call does. The
   * others go on until the last of those has ended. On a slow machine one may be very late, but not
   * half of them by as much again.
   */
  @Test
  @Timeout(120)
  void deadlinesHoldUnderLoad() throws Exception {
    Duration deadline = Duration.ofSeconds(3);
    downstream.behave(Behaviour.ANSWER_MOST);
    turn("{\"downstream_timeout_ms\": " + deadline.toMillis() + "}");
    int ended = downstream.ended();
    int unanswered = FakeDownstream.UNANSWERED;
    Queue<Duration> late = new ConcurrentLinkedQueue<>();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Callable<Void> caller = () -> callUntilAllAreLate(late);
      for (Future<Void> each : threads.invokeAll(Collections.nCopies(2 * unanswered, caller))) {
        each.get();
      }
      // No call was late that the downstream had answered.
      assertThat(late).hasSize(unanswered);
      await(() -> downstream.ended() == ended + unanswered);
    } finally {
      turn("{\"downstream_timeout_ms\": " + ContractTest.HELD_MS + "}");
    }
    List<Duration> sorted = late.stream().sorted().toList();
    assertThat(sorted.getFirst()).isGreaterThanOrEqualTo(deadline);
    assertThat(sorted.get(unanswered / 2)).isLessThan(deadline.multipliedBy(2));
  }

  /** Heads and bodies of the sizes that {@code make jmh} compares, both ways, in pieces. */
  @Test
  void longerHeadsAndBodiesPassUnharmed() throws Exception {
    String body = IntStream.range(0, 2_048).mapToObj("%08x"::formatted).collect(joining());
    String fields =
        "Filler: %s\r\nContent-Length: %d\r\n\r\n".formatted("x".repeat(1_450), body.length());
    downstream.answerWith("HTTP/1.1 200 OK\r\n" + fields + body);
    String requests = ("GET /downstream HTTP/1.1\r\nHost: lab\r\n" + fields + body).repeat(2);
    try (RawClient client = client()) {
      for (int at = 0; at < requests.length(); at += 1_000) {
        client.send(requests.substring(at, Math.min(at + 1_000, requests.length())));
      }
      assertThat(client.read().body()).isEqualTo(body);
      assertThat(client.read().body()).isEqualTo(body);
    }
  }

  // --- limits ---------------------------------------------------------------------------------

  /** A place that comes free goes to whoever has waited longest, on whichever loop. */
  @Test
  void placesGoToWhoeverWaitedLongest() throws Exception {
    downstream.behave(Behaviour.HOLD);
    turn("{\"downstream_connections\": 1}");
    List<RawClient> clients = new ArrayList<>();
    try {
      for (int i = 0; i < 6; i++) {
        clients.add(client().request("GET", "/downstream"));
        int waiting = i;
        await(() -> leased() == 1 && pending() == waiting);
      }
      for (RawClient next : clients) {
        downstream.answerHeld(1);
        assertThat(next.read().status()).isEqualTo(200);
      }
    } finally {
      for (RawClient each : clients) {
        each.close();
      }
      turn("{\"downstream_connections\": 20000}");
    }
  }

  /** Beyond the bound a request is refused at once, and the next one is welcome again. */
  @Test
  void beyondItsBoundTheQueueIs503() throws Exception {
    String rule = "beyondItsBoundTheQueueIs503";
    String settings = ContractTest.management(server).get("/settings");
    if (settings.contains("\"queue_bound\":null")) {
      verify(rule, "unbounded", "503, then 200");
      return;
    }
    boolean pool = !settings.contains("\"pool_size\":null");
    downstream.behave(Behaviour.HOLD);
    turn(pool ? "{\"pool_size\": 1, \"queue_bound\": 1}" : "{\"queue_bound\": 2}");
    try (RawClient first = client();
        RawClient second = client();
        RawClient third = client();
        RawClient old = client()) {
      first.request("GET", "/downstream");
      await(() -> leased() == 1);
      second.request("GET", "/downstream");
      await(() -> pool ? mbean("WorkerPool", "QueueDepth") == 1 : leased() == 2);
      int refused = third.get("/health").status();
      assertThat(old.send("GET /health HTTP/1.0\r\n\r\n").rest()).isEqualTo("503 closed");
      downstream.answerHeld(2);
      assertThat(first.read().status()).isEqualTo(200);
      assertThat(second.read().status()).isEqualTo(200);
      await(() -> inFlight() == 0);
      String then = third.trySend(GET + "\r\n").next();
      verify(rule, refused + ", then " + then, "503, then 200");
    } finally {
      turn(pool ? "{\"pool_size\": 200, \"queue_bound\": 0}" : "{\"queue_bound\": 0}");
    }
  }

  /** A client's end is no request: it waits for no thread, and keeps nobody out. */
  @Test
  void idleClientsThatLeaveTakeNoPlace() throws Exception {
    String rule = "idleClientsThatLeaveTakeNoPlace";
    String settings = ContractTest.management(server).get("/settings");
    assumeFalse(settings.contains("\"pool_size\":null"), "no pool");
    boolean declared = deviations.declares(rule);
    int bound = 10;
    downstream.behave(Behaviour.HOLD);
    turn("{\"pool_size\": 1, \"queue_bound\": " + bound + "}");
    List<RawClient> crowd = new ArrayList<>();
    try (RawClient first = client();
        RawClient next = client()) {
      for (int i = 0; i < bound; i++) {
        crowd.add(client());
        assertThat(crowd.getLast().get("/health").status()).isEqualTo(200);
      }
      first.request("GET", "/downstream");
      await(() -> leased() == 1);
      double before = refused();
      for (RawClient idle : crowd) {
        idle.endOutput();
      }
      if (declared) {
        await(() -> mbean("WorkerPool", "QueueDepth") == bound);
      } else {
        for (RawClient idle : crowd) {
          assertThat(idle.isClosedByServer()).isTrue();
        }
      }
      next.request("GET", "/health");
      await(() -> declared ? refused() > before : mbean("WorkerPool", "QueueDepth") == 1);
      downstream.answerHeld(1);
      assertThat(first.read().status()).isEqualTo(200);
      verify(rule, next.next(), "200");
    } finally {
      for (RawClient idle : crowd) {
        idle.close();
      }
      turn("{\"pool_size\": 200, \"queue_bound\": 0}");
    }
  }

  /** Who is refused takes nobody's place, however long it takes to read so. */
  @Test
  void aRefusalTakesNoPlace() throws Exception {
    String settings = ContractTest.management(server).get("/settings");
    assumeFalse(settings.contains("\"queue_bound\":null"), "no bound");
    assumeTrue(settings.contains("\"pool_size\":null"), "what is bound is a pool's queue");
    downstream.behave(Behaviour.HOLD);
    turn("{\"queue_bound\": 1}");
    try (RawClient first = client();
        RawClient deaf = new RawClient(server.httpPort(), 4096)) {
      first.request("GET", "/downstream");
      await(() -> leased() == 1);
      Thread asking = Thread.ofVirtual().start(() -> deaf.sendUntilClosed(GET + "\r\n"));
      // Up to the first refusal that the kernel has no room for: none more in half a second.
      double before = refused();
      double refused = before;
      for (int same = 0; same < 5; same++) {
        Thread.sleep(100);
        double now = refused();
        if (now > refused || now == before) {
          same = 0;
        }
        refused = now;
      }
      downstream.answerHeld(1);
      assertThat(first.read().status()).isEqualTo(200);
      await(this::isServed);
      deaf.reset();
      asking.join();
    } finally {
      turn("{\"queue_bound\": 0}");
    }
  }

  // --- work that fails ------------------------------------------------------------------------

  /** A bug in the work is a 500 and nothing more. */
  @Test
  void workThatThrowsIs500() throws Exception {
    if (context == null) {
      verify("workThatThrowsIs500", "not tried", "500");
      return;
    }
    List<Runnable> bugs =
        List.of(
            () -> {
              throw new IllegalStateException("planted by a test");
            },
            () -> {
              throw new AssertionError("planted by a test");
            });
    for (Runnable each : bugs) {
      bug = each;
      assertThat(get("/metrics").status()).isEqualTo(500);
    }
    bug = () -> {};
    isWell();
  }

  /** So it is when it happens later, on another thread. */
  @Test
  void workThatThrowsElsewhereIs500() throws Exception {
    ModelContext reachable = context;
    if (reachable == null) {
      verify("workThatThrowsElsewhereIs500", "not tried", "500");
      return;
    }
    // It is deleted; no other test here reads it.
    reachable.file().close();
    List<String> targets = new ArrayList<>(List.of("/file"));
    if (model().routes().contains(Route.AGGREGATE)) {
      targets.addAll(List.of("/aggregate?wait_ms=1", "/aggregate-with-fallback"));
    }
    for (String target : targets) {
      assertThat(get(target).status()).as(target).isEqualTo(500);
    }
    isWell();
  }

  // --- requests that are none -----------------------------------------------------------------

  /** Each is refused, or its connection closed: never a 200, a 500, a crash or a leak. */
  @ParameterizedTest
  @EnumSource
  void whatIsNoRequestIsRefused(Malformed kind) throws Exception {
    // A new kind goes to the end: the others' requests stay the same.
    Random random = new Random(SEED + List.of(Malformed.values()).indexOf(kind));
    if (descriptorsBefore == 0) {
      isWell();
      descriptorsBefore = descriptors();
    }
    Map<String, String> seen = new HashMap<>();
    for (int i = 0; i < OF_EACH_KIND; i++) {
      String request = kind.next(random);
      try (RawClient client = client()) {
        client.trySend(request);
        if (kind == Malformed.INCOMPLETE) {
          client.endOutput();
        }
        String outcome = client.rest();
        seen.put(kind.refusals().contains(outcome) ? "refused" : outcome, request);
      } catch (IOException e) {
        throw new AssertionError(request, e);
      }
      isWell();
    }
    List<String> outcomes = seen.keySet().stream().sorted().toList();
    String outcome = outcomes.equals(List.of("refused")) ? "refused" : outcomes.toString();
    String[] allowed =
        kind == Malformed.FOLDED
            ? new String[] {"refused", "[200 closed]"}
            : new String[] {"refused"};
    verify(kind.name(), outcome, allowed);
    // Over all kinds: a leak of one kind may be of few.
    await(() -> descriptors() <= descriptorsBefore + SPARE_DESCRIPTORS);
  }

  /** Also where it is the framework that finds nothing, as the lab found a route in the path. */
  @Test
  void anAnswerIsCountedByItsStatus() throws Exception {
    double errors = requests("client_error");
    double successes = requests("ok");
    int status = get("//health").status();
    assertThat(status).isLessThan(500);
    String rule = "anAnswerIsCountedByItsStatus";
    if (deviations.declares(rule)) {
      // By then it would have been counted, too.
      assertThat(get("/health").status()).isEqualTo(200);
      await(() -> requests("ok") > successes);
      verify(rule, requests("client_error") > errors ? "counted" : "not counted", "counted");
    } else {
      await(() -> status < 400 ? requests("ok") > successes : requests("client_error") > errors);
    }
  }

  /** Each is one of the answers that were given. */
  @Test
  void whatIsNoRequestIsCounted() throws Exception {
    String metric = "lab_http_requests_total{outcome=\"client_error\",route=\"none\"}";
    double before = ContractTest.management(server).metric(metric);
    for (String request :
        List.of("nonsense\r\n\r\n", GET + "Host: lab\r\nConnection: close\r\n\r\n")) {
      try (RawClient client = client()) {
        var _ = client.trySend(request).rest();
      }
    }
    try (RawClient client = client()) {
      String filler = ("Filler: " + "x".repeat(1_000) + "\r\n").repeat(100);
      var _ = client.trySend(GET + filler + "Connection: close\r\n\r\n").rest();
    }
    double counted = ContractTest.management(server).metric(metric) - before;
    verify("whatIsNoRequestIsCounted", "%.0f counted".formatted(counted), "3 counted");
  }

  // --- what can be seen -----------------------------------------------------------------------

  /** Idle ones, too: they are what a server has to keep. */
  @Test
  void openConnectionsAreCounted() throws Exception {
    String rule = "openConnectionsAreCounted";
    String metric = "lab_http_connections_open";
    Management management = ContractTest.management(server);
    if (!management.get("/metrics").contains(metric + " ")) {
      verify(rule, "no metric", "counted");
      return;
    }
    try (RawClient one = client();
        RawClient other = client()) {
      assertThat(one.get("/health").status()).isEqualTo(200);
      assertThat(other.get("/health").status()).isEqualTo(200);
      await(() -> management.metric(metric) == 2);
    }
    await(() -> management.metric(metric) == 0);
    verify(rule, "counted", "counted");
  }

  // --- how ------------------------------------------------------------------------------------

  private void verify(String rule, String happened, String... allowed) {
    deviations.verify(rule, happened, allowed);
  }

  /** The status of a call of the downstream, and whether its body is another than it should be. */
  private static String downstreamSays(RawClient client) throws IOException {
    RawAnswer answer = client.get("/downstream");
    boolean another = answer.status() == 200 && !answer.body().equals(FakeDownstream.BODY);
    return answer.status() + (another ? " of another body" : "");
  }

  /** Adds how long its own late calls took. */
  private @Nullable Void callUntilAllAreLate(Queue<Duration> late) throws IOException {
    try (RawClient client = client()) {
      while (late.size() < FakeDownstream.UNANSWERED) {
        long begun = System.nanoTime();
        String said = downstreamSays(client);
        if (!said.equals("200")) {
          late.add(Duration.ofNanos(System.nanoTime() - begun));
          assertThat(said).isEqualTo("504");
        }
      }
    }
    return null;
  }

  private boolean isAnsweredOverANewConnection() {
    int before = downstream.connections();
    try (RawClient client = client()) {
      return downstreamSays(client).equals("200") && downstream.connections() > before;
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private RawClient client() throws IOException {
    return new RawClient(server.httpPort());
  }

  private RawAnswer get(String target) throws IOException {
    try (RawClient client = client()) {
      return client.get(target);
    }
  }

  private void isWell() throws IOException {
    assertThat(get("/health").status()).isEqualTo(200);
  }

  private void turn(String knobs) {
    assertThat(ContractTest.management(server).call("PATCH", "/settings", knobs).statusCode())
        .isEqualTo(200);
  }

  private static void askForMetrics(RawClient client, int times) {
    try {
      for (int i = 0; i < times; i++) {
        client.request("GET", "/metrics");
      }
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private boolean isServed() {
    try {
      return get("/health").status() == 200;
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** Requests for {@code /health} that were refused, and their clients have been told so. */
  private double refused() {
    return ContractTest.management(server)
        .metric("lab_http_requests_total{outcome=\"rejected\",route=\"/health\"}");
  }

  /** Requests of all routes that are being worked on. */
  private double inFlight() {
    return ofAllRoutes("lab_http_requests_in_flight{");
  }

  /** Requests of all routes that have ended like this. */
  private double requests(String outcome) {
    return ofAllRoutes("lab_http_requests_total{outcome=\"" + outcome + "\",");
  }

  private double ofAllRoutes(String start) {
    return ContractTest.management(server)
        .get("/metrics")
        .lines()
        .filter(line -> line.startsWith(start))
        .mapToDouble(line -> Double.parseDouble(line.substring(line.indexOf("} ") + 2)))
        .sum();
  }

  private int leased() {
    return mbean("DownstreamConnections", "Leased");
  }

  private int pending() {
    return mbean("DownstreamConnections", "Pending");
  }

  private int mbean(String type, String attribute) {
    try {
      return (int) server.mbeans().getAttribute(new ObjectName("lab", "type", type), attribute);
    } catch (IOException | JMException e) {
      throw new AssertionError(type + "." + attribute, e);
    }
  }

  /** Files and sockets that the server's process has open. */
  private long descriptors() {
    try {
      return ManagementFactory.getPlatformMXBean(server.mbeans(), UnixOperatingSystemMXBean.class)
          .getOpenFileDescriptorCount();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** The same model with bugs to be planted, where its parts can be reached. */
  private static Launcher breakable(Launcher launcher) {
    return launcher instanceof InThisJvm(ServerModel model)
        ? new InThisJvm(breakable(model))
        : launcher;
  }

  private static ServerModel breakable(ServerModel model) {
    return new ServerModel(
        model.name(),
        model.routes(),
        real -> {
          context =
              new ModelContext(
                  real.model(),
                  real.settings(),
                  real.routes(),
                  real.requests(),
                  real.downstream(),
                  real.file(),
                  real.knobs(),
                  real.mbeans(),
                  real.registry(),
                  () -> {
                    bug.run();
                    return real.exposition().get();
                  });
          return model.start().start(context);
        });
  }
}
