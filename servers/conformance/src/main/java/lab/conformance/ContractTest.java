package lab.conformance;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import lab.conformance.FakeDownstream.Behaviour;
import lab.conformance.Rules.Rule;
import lab.shell.LabServer;
import lab.shell.ModelContext;
import lab.shell.ServerModel;
import lab.shell.TrafficServer;
import lab.spec.BadValueException;
import lab.spec.Route;
import org.junit.jupiter.api.Test;

/**
 * What every lane must do, seen from outside: through sockets, on free ports. FAIRNESS.md has the
 * rules, and what a lane does instead. Nothing here knows how a lane waits. The suite is one class
 * in four files, as most tests share one server; here are those that start their own.
 */
public abstract class ContractTest extends DownstreamTest {
  /** Most descriptors that a server may have which is to have too few. */
  private static final int DESCRIPTORS = 200;

  protected ContractTest(ServerModel model, String threadName) {
    super(model, threadName);
  }

  /**
   * A client that sends nothing, one that never sends all, one that reads nothing, one that waits
   * for its answer, and a kept connection to the downstream: what may not wait for ever is closed.
   * At last descriptors run out, in a process of its own: a client without one waits in the
   * kernel's queue, and no restart is needed.
   */
  @Test
  @Rule({"4.6", "5.25"})
  void whatKeepsTheServerWaitingIsClosed() throws Exception {
    boolean limits = chooses(CLIENT_LIMITS);
    var launcher =
        limits || chooses(SETTINGS_OF_A_JVM)
            ? ChildServer.ofMain(System.getProperty("model.main"), DESCRIPTORS)
            : launcher();
    start(launcher, false, "LAB_KEEP_ALIVE_TIMEOUT_S", "1", "LAB_DOWNSTREAM_KEEP_IDLE_S", "1");
    downstream().answerWith(FakeDownstream.ok(FakeDownstream.BODY), false);
    // In a new JVM the first request may take longer than a client may idle.
    await(() -> status("/downstream") == 200 && isWell());
    // Each sends as soon as it is connected.
    RawClient waiting = client().request("GET", "/?wait_ms=2000");
    RawClient slow = client().send(GET);
    RawClient deaf = client(4096);
    RawClient idle = client();
    assertThat(idle.get("/health").status()).isEqualTo(200);
    Thread asking = deaf.sendOften(limits ? Integer.MAX_VALUE : 0, GET_METRICS);
    // What the lane leaves open is waited for no longer than twice its time.
    boolean open = isOpen(slow, deviation().contains("slow open") ? 2 : PATIENCE.toSeconds());
    assertThat(idle.isClosedByServer()).isTrue();
    verify(
        "slow %s, waiting %s".formatted(open ? "open" : "closed", waiting.next()),
        "slow closed, waiting 200");
    assertThat(asking.join(PATIENCE)).isTrue();
    boolean keeps = !has(readBack(), "downstream_keep_idle_s");
    if (!keeps) {
      await(() -> downstream().ended() == downstream().connections());
    }
    verifyRow("5.25", keeps && downstream().ended() == 0 ? "kept" : "closed", "closed");
    if (limits) {
      runOutOfDescriptors();
    }
  }

  private static boolean isOpen(RawClient slow, long seconds) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    while (System.nanoTime() < end) {
      if (!slow.isTaken("A: b\r\n")) {
        return false;
      }
      Thread.sleep(20);
    }
    return true;
  }

  private void runOutOfDescriptors() throws Exception {
    downstream().behave(Behaviour.HOLD);
    RawClient first = client().request("GET", "/downstream").request("GET", "/health");
    awaitInFlight("/downstream", 1);
    List<RawClient> crowd = new ArrayList<>();
    for (int i = 0; i < 2 * DESCRIPTORS; i++) {
      crowd.add(client());
    }
    downstream().answerHeld(1);
    assertThat(first.read().status()).isEqualTo(200);
    assertThat(first.read().status()).isEqualTo(200);
    for (RawClient each : crowd) {
      each.close();
    }
    await(this::isWell);
  }

  /** Whether an answer announces the end of its connection, or there is no connection any more. */
  private static boolean isClosing(int port) {
    try (RawClient client = new RawClient(port)) {
      return client.get("/health").headers().containsKey("Connection");
    } catch (IOException e) {
      return true;
    }
  }

  /** What came while it worked became ready in the middle of that work, as far as it can tell. */
  @Test
  @Rule("7.5")
  void anAnswerThatTheLoopIsTooBusyToReadIsSeen() throws Exception {
    assumeChosen(UNREAD);
    start("LAB_LOOPS", "1", "LAB_BLOCK_THE_LOOP", "true");
    String seconds = "lab_downstream_unread_seconds_sum";
    RawClient waiting = client();
    RawClient blocking = client();
    // Leaves a connection to the downstream, so that the next call needs no new one.
    assertThat(waiting.get("/downstream").status()).isEqualTo(200);
    downstream().behave(Behaviour.HOLD);
    double unread = 0;
    int busyMs = 100;
    // On a slow machine the loop is done before the answer comes: then it has to work for longer.
    for (int begun = 1; unread < 0.45 * busyMs / 1000; begun++) {
      busyMs *= 2;
      assertThat(busyMs).isLessThan((int) PATIENCE.toMillis());
      double before = metric(seconds);
      waiting.request("GET", "/downstream");
      awaitInFlight("/downstream", 1);
      blocking.request("GET", "/?wait_ms=" + busyMs);
      int blocked = begun;
      await(
          () ->
              metric("lab_http_requests_in_flight{route=\"/\"}") + requests("ok", "/") >= blocked);
      downstream().answerHeld(1);
      assertThat(waiting.read().status()).isEqualTo(200);
      assertThat(blocking.read().status()).isEqualTo(200);
      awaitInFlight("/downstream", 0);
      unread = metric(seconds) - before;
    }
    assertThat(metric(seconds))
        .isLessThan(metric("lab_downstream_call_seconds_sum{phase=\"call\"}"));
  }

  /**
   * The queue is neither hidden nor made up where one thread, loop or carrier works for twenty
   * clients. A loop's estimate may be off by half a request, and by a round as clients come and go:
   * each asks often. On a busy machine they wait for a CPU, too: two of five tries count.
   */
  @Test
  @Rule("7.6")
  void theQueueIsWhatClientsWaitedIn() throws Exception {
    assumeChosen(CLIENT_LIMITS);
    start("LAB_POOL_SIZE", "1", "LAB_LOOPS", "1", "LAB_FRONTS", "1");
    long carriers = Long.parseLong(readBack().replaceFirst(".*_parallelism\":(\\d+).*", "$1"));
    List<String> outcomes = new ArrayList<>();
    try {
      turn("virtual_thread_parallelism", 1);
      while (outcomes.size() < 5 && Collections.frequency(outcomes, "in the queue") < 2) {
        double queue = -seconds("queue", "/compute");
        double service = -seconds("service", "/compute");
        double waited = secondsWaited("/compute?limit=100000");
        awaitInFlight("/compute", 0);
        queue += seconds("queue", "/compute");
        service += seconds("service", "/compute");
        double explained = (queue + service) / waited;
        String where = queue > service ? "in the queue" : "in service";
        outcomes.add(explained < 0.9 ? "nowhere" : explained > 1.1 ? "longer than that" : where);
      }
    } finally {
      turn("virtual_thread_parallelism", carriers);
    }
    boolean isSeen = Collections.frequency(outcomes, "in the queue") == 2;
    verify(isSeen ? "in the queue" : outcomes.getLast(), "in the queue");
  }

  /** How long twenty clients wait for twelve answers each, taken together. */
  private double secondsWaited(String target) throws Exception {
    Callable<Long> caller =
        () -> {
          try (RawClient client = client()) {
            assertThat(client.get("/health").status()).isEqualTo(200);
            long begun = System.nanoTime();
            for (int i = 0; i < 12; i++) {
              assertThat(client.get(target).status()).isEqualTo(200);
            }
            return System.nanoTime() - begun;
          }
        };
    return atOnce(20, caller).stream().mapToLong(nanos -> nanos).sum() / 1e9;
  }

  /**
   * A server whose downstream refuses, and that has an idle client, restarts as it promised, and
   * does not wait for that client.
   */
  @Test
  @Rule("8.3")
  void anIdleServerRestartsAtOnce() throws Exception {
    // Bound, so that no other process takes the port, and not listening, so that it refuses.
    try (Socket bound = new Socket()) {
      bound.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      start("LAB_DOWNSTREAM_URL", "http://127.0.0.1:%d/".formatted(bound.getLocalPort()));
      assertThat(get("/downstream").status()).isEqualTo(502);
      assertThat(calls("refused")).isEqualTo(1);
      assertThat(client().get("/health").status()).isEqualTo(200);
      long begun = System.nanoTime();
      assertThat(call("POST", "/restart", "").status()).isEqualTo(202);
      assertThat(server().awaitRestart(PATIENCE)).isTrue();
      stop();
      assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(LabServer.STOP_GRACE);
    }
  }

  @Test
  @Rule("8.4")
  void stoppingLetsRequestsEndAndFreesThePort() throws Exception {
    start();
    int port = server().httpPort();
    FakeDownstream downstream = downstream();
    RawClient client = heldClient().request("GET", "/health");
    try (ExecutorService thread = Executors.newVirtualThreadPerTaskExecutor()) {
      var stopping = thread.submit(() -> assertThatCode(Fixture::stop).doesNotThrowAnyException());
      await(() -> isClosing(port));
      downstream.answerHeld(1);
      assertThat(client.rest()).isIn("200 closed", "200 200 closed");
      stopping.get();
    }
    assertThatThrownBy(() -> new RawClient(port)).isInstanceOf(ConnectException.class);
  }

  @Test
  @Rule("8.5")
  void whatHangsBeyondTheGraceIsCutAndWhatIsBehindItToo() throws Exception {
    assumeTrue(isInThisJvm(), "its grace is as long as it is");
    startPlanted(context -> new Hasty(model.start().start(context)));
    int port = server().httpPort();
    RawClient client = heldClient().request("GET", "/health");
    long begun = System.nanoTime();
    stop();
    if (chooses(CLIENT_LIMITS)) {
      assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(LabServer.STOP_GRACE);
    }
    assertThat(client.rest()).isEqualTo("closed");
    assertThatThrownBy(() -> new RawClient(port)).isInstanceOf(ConnectException.class);
  }

  private void startPlanted(ServerModel.Start start) throws IOException, BadValueException {
    start(InThisJvm.of(new ServerModel(model.name(), model.routes(), start)), false);
  }

  /** A server whose grace is soon over. */
  private record Hasty(TrafficServer server) implements TrafficServer {
    @Override
    public int port() {
      return server.port();
    }

    @Override
    public void stop(Duration grace) {
      server.stop(Duration.ofMillis(100));
    }
  }

  @Test
  @Rule("8.6")
  void aPortThatIsTakenIsRefusedAndLeavesNoThread() throws Exception {
    if (isInThisJvm()) {
      // What a JVM has once and for all is there then.
      start();
      assertThat(isWell()).isTrue();
      stop();
    }
    Set<Thread> before = Thread.getAllStackTraces().keySet();
    for (String setting : List.of("LAB_HTTP_PORT", "LAB_MANAGEMENT_PORT")) {
      try (ServerSocket taken = new ServerSocket(0)) {
        assertThatThrownBy(() -> start(setting, String.valueOf(taken.getLocalPort())))
            .isInstanceOf(IOException.class);
      }
    }
    if (isInThisJvm()) {
      await(() -> namesOfThreadsSince(before).equals(deviation()));
      verify(namesOfThreadsSince(before), "");
    }
  }

  private static String namesOfThreadsSince(Set<Thread> before) {
    // So end the threads of those of the JDK's HTTP clients that are not closed: Spring makes one.
    System.gc();
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> !before.contains(thread))
        .map(Thread::getName)
        // Reactor's, for the whole JVM: it makes them one by one.
        .filter(name -> !name.startsWith("parallel-"))
        .distinct()
        .sorted()
        .collect(Collectors.joining(", "));
  }

  @Test
  @Rule("8.7")
  void workThatThrowsIs500() throws Exception {
    if (!isInThisJvm()) {
      verify("not tried", "500");
      return;
    }
    Runnable exception =
        () -> {
          throw new IllegalStateException("planted by a test");
        };
    AtomicReference<Runnable> bug = new AtomicReference<>(() -> {});
    AtomicReference<ModelContext> context = new AtomicReference<>();
    startPlanted(
        real -> {
          context.set(real);
          var _ =
              GaugeWithCallback.builder()
                  .name("planted")
                  .callback(_ -> requireNonNull(bug.get()).run())
                  .register(real.registry());
          return model.start().start(real);
        });
    for (Runnable each : List.<Runnable>of(exception, () -> fail("planted by a test"))) {
      bug.set(each);
      assertThat(get("/metrics").status()).isEqualTo(500);
    }
    bug.set(() -> {});
    // Deleted: what reads it fails later, on another thread.
    requireNonNull(context.get()).file().close();
    int aggregate = model.routes().contains(Route.AGGREGATE) ? 500 : 404;
    assertThat(status("/file")).isEqualTo(500);
    assertThat(status("/aggregate?wait_ms=1")).isEqualTo(aggregate);
    assertThat(status("/aggregate-with-fallback")).isEqualTo(aggregate);
    assertThat(isWell()).isTrue();
    verify("500", "500");
  }

  /** The rest of the suite is not run again: the code is the same, the limits are others. */
  @Test
  @Rule("8.8")
  void asItShipsAFrameworkReadsBackWhatItBrings() throws Exception {
    if (asShipped().isEmpty()) {
      start("LAB_FRAMEWORK_DEFAULTS", "shipped");
      assertThat(has(readBack(), "framework_defaults")).isFalse();
      return;
    }
    start("LAB_FRAMEWORK_DEFAULTS", "shipped", "LAB_LOOPS", "0");
    assertThat(get("/downstream").body()).isEqualTo(FakeDownstream.BODY);
    assertThat(readBack()).contains("\"framework_defaults\":\"shipped\"").contains(asShipped());
  }

  @Test
  @Rule("8.9")
  void aFrameworkThatBlocksAnswersWithTheLabsClient() throws Exception {
    start("LAB_DOWNSTREAM_CLIENT", "lab");
    assertThat(get("/downstream").body()).isEqualTo(FakeDownstream.BODY);
    if (has(readBack(), "downstream_client")) {
      assertThat(readBack())
          .contains("\"downstream_client\":\"lab\"", "\"downstream_keep_idle_s\":60");
    }
  }
}
