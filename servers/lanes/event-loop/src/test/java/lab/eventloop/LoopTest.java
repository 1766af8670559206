package lab.eventloop;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.Pipe;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import lab.reactor.Exchange;
import lab.reactor.Reactor;
import lab.reactor.Reactor.Ready;
import lab.reactor.ReactorGroup;
import lab.shell.LabServer;
import lab.shell.ModelContext;
import lab.shell.ServerModel;
import lab.shell.TrafficServer;
import lab.spec.Settings;
import lab.work.DownstreamAddress;
import lab.work.DownstreamLimits;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A loop by itself, whose turns a test takes, or its own thread. */
@Timeout(120)
class LoopTest {
  private static final ByteBuffer REQUEST =
      ByteBuffer.wrap("GET /compute HTTP/1.1\r\nHost: lab\r\n\r\n".getBytes(US_ASCII))
          .asReadOnlyBuffer();

  private static final ByteBuffer METRICS =
      ByteBuffer.wrap("GET /metrics HTTP/1.1\r\nHost: lab\r\n\r\n".getBytes(US_ASCII))
          .asReadOnlyBuffer();

  /** What a slow selection takes: far more than ten requests that compute for a millisecond. */
  private static final int SLOW_MS = 200;

  private static final List<AutoCloseable> OPENED = new ArrayList<>();

  @AfterEach
  void close() throws Exception {
    for (AutoCloseable each : OPENED.reversed()) {
      each.close();
    }
    OPENED.clear();
  }

  /** The queue has as much time as the selection took, here for all; a slice is for one or two. */
  @Test
  void aSlowSelectionLeavesTheQueueAsMuchTime() throws Exception {
    Loop loop = loop(9, () -> {});
    ServerSocketChannel listener = listening(loop);
    List<SocketChannel> clients = new ArrayList<>();
    for (int i = 0; i < 10; i++) {
      clients.add(open(SocketChannel.open(listener.getLocalAddress())));
    }
    while (loop.openConnections() < clients.size()) {
      loop.turn();
    }
    Pipe pipe = Pipe.open();
    open(pipe.sink());
    open(pipe.source()).configureBlocking(false);
    pipe.source().register(loop.selector(), SelectionKey.OP_READ, new Slow());
    int mostBegun = 0;
    // The clients' bytes may come after the selection: then the next try counts.
    for (int i = 0; i < 20 && mostBegun < clients.size(); i++) {
      for (SocketChannel client : clients) {
        int _ = client.write(REQUEST.duplicate());
      }
      int _ = pipe.sink().write(ByteBuffer.allocate(1));
      loop.turn();
      int queued = loop.queueDepth().orElseThrow();
      mostBegun = Math.max(mostBegun, clients.size() - queued);
      while (loop.queueDepth().orElseThrow() > 0) {
        loop.turn();
      }
    }
    assertThat(mostBegun).isEqualTo(clients.size());
  }

  @Test
  void aConnectionThatCannotBeAdoptedIsClosed() throws Exception {
    Loop loop = loop(9, () -> {});
    SocketChannel channel = open(SocketChannel.open());
    loop.selector().close();
    assertThatThrownBy(() -> loop.adopt(channel)).isInstanceOf(ClosedSelectorException.class);
    assertThat(channel.isOpen()).isFalse();
    assertThat(loop.openConnections()).isZero();
  }

  /** Its place is given back after that: what becomes of the next one is not its own fault. */
  @Test
  void aCallIsAnsweredWhateverBecomesOfTheNext() throws Exception {
    ServerSocketChannel silent = open(ServerSocketChannel.open());
    silent.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    Loop loop =
        loop(
            silent.socket().getLocalPort(),
            () -> {},
            "LAB_DOWNSTREAM_CONNECTIONS",
            "1",
            "LAB_DOWNSTREAM_TIMEOUT_MS",
            "100");
    CompletableFuture<Integer> first = new CompletableFuture<>();
    loop.execute(
        () -> {
          var _ = loop.after(50_000_000, () -> close(loop.selector()));
          loop.downstream.call(answer -> first.complete(answer.status()));
          loop.downstream.call(answer -> {});
          // All of it is due at once then: nobody can connect any more, and the first is late,
          // which gives its place to the second.
          sleep(300);
        });
    loop.run();
    assertThat(first).isCompletedWithValue(504);
  }

  /** What it could not keep while it worked is read and dropped then, up to its client's end. */
  @Test
  void aClientThatHasSaidTooMuchIsSeenToLeave() throws Exception {
    Loop loop = loop(9, () -> {});
    ServerSocketChannel listener = listening(loop);
    SocketChannel client = open(SocketChannel.open(listener.getLocalAddress()));
    ByteBuffer last =
        ByteBuffer.wrap(
            "GET /?wait_ms=100 HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n"
                .getBytes(US_ASCII));
    int _ = client.write(last);
    while (loop.openConnections() == 0) {
      loop.turn();
    }
    int _ = client.write(ByteBuffer.allocate(100_000));
    client.shutdownOutput();
    // Nothing else ends it: the loop that looks for clients that linger does not run here.
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (loop.openConnections() > 0 && System.nanoTime() < end) {
      loop.execute(() -> {});
      loop.turn();
      sleep(1);
    }
    assertThat(loop.openConnections()).isZero();
  }

  /** As where a connection is made anew for what a lost one owes. */
  @Test
  void whatThrowsAsItIsLostIsStillOneConnectionsFault() throws Exception {
    Loop loop = loop(9, () -> {});
    ServerSocketChannel listener = listening(loop);
    Pipe pipe = Pipe.open();
    open(pipe.sink());
    open(pipe.source()).configureBlocking(false);
    pipe.source().register(loop.selector(), SelectionKey.OP_READ, new Hopeless());
    int _ = pipe.sink().write(ByteBuffer.allocate(1));
    open(SocketChannel.open(listener.getLocalAddress()));
    while (loop.openConnections() == 0) {
      loop.turn();
    }
    assertThat(pipe.source().isOpen()).isFalse();
  }

  /** As where no file descriptor is left: it accepts again when there may be one. */
  @Test
  void anAcceptThatFailsIsTriedAgain() throws Exception {
    Loop loop = loop(9, () -> {});
    ServerSocketChannel listener = listening(loop);
    ((Ready) listener.keyFor(loop.selector()).attachment())
        .lost(new IOException("Too many open files, planted by a test"));
    open(SocketChannel.open(listener.getLocalAddress()));
    assertThat(listener.keyFor(loop.selector()).interestOps()).isZero();
    while (loop.openConnections() == 0) {
      loop.turn();
    }
  }

  @Test
  void whatIsNoConnectionsFaultBreaksTheLoop() throws Exception {
    List<String> told = new ArrayList<>();
    Loop loop = loop(9, () -> told.add("broken"));
    loop.execute(LoopTest::fail);
    loop.run();
    assertThat(told).containsExactly("broken");
  }

  /** A server without its loop must not look alive. */
  @Test
  void aBrokenLoopEndsItsProcess() throws Exception {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-preview",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("java.class.path"),
                BrokenServer.class.getName())
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .start();
    try {
      assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
      assertThat(process.exitValue()).isEqualTo(70);
    } finally {
      process.destroyForcibly();
    }
  }

  /** A process that a loop breaks in, and that has other threads. */
  static final class BrokenServer {
    private BrokenServer() {}

    public static void main(String[] args) throws Exception {
      Loop loop = loop(9, ReactorGroup::endProcess);
      loop.execute(LoopTest::fail);
      loop.run();
      Thread.sleep(Duration.ofMinutes(10));
    }
  }

  /** It is idle from then on, and the server need not wait for it. */
  @Test
  void whoReadsTheLastAnswerOfAServerThatStopsIsClosed() throws Exception {
    ModelContext context = context();
    ReactorGroup group = new ReactorGroup(context, () -> {});
    Loop loop = group.open("loop-", 1, name -> loop(name, group, context, 9)).getFirst();
    SocketChannel client = open(SocketChannel.open());
    client.setOption(StandardSocketOptions.SO_RCVBUF, 4096);
    var _ = client.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), group.port()));
    while (loop.selector().keys().stream()
        .noneMatch(key -> (key.interestOps() & SelectionKey.OP_WRITE) != 0)) {
      int _ = client.write(METRICS.duplicate());
      loop.turn();
      // Once more: what has no room becomes a task.
      loop.execute(() -> {});
      loop.turn();
    }
    group.stop(Duration.ofMinutes(1));
    Thread reading = Thread.ofPlatform().daemon().start(() -> readToEnd(client));
    while (loop.openConnections() > 0 && !Thread.interrupted()) {
      loop.turn();
    }
    assertThat(loop.openConnections()).isZero();
    reading.join();
  }

  private static void readToEnd(SocketChannel client) {
    try {
      int _ = Channels.newInputStream(client).readAllBytes().length;
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void allLoopsHaveOneGraceTogether() throws Exception {
    ReactorGroup group = new ReactorGroup(context(), () -> {});
    CountDownLatch held = new CountDownLatch(1);
    var _ = group.open("loop-", 4, name -> new Held(name, group, held));
    group.start(() -> 0);
    long begun = System.nanoTime();
    group.stop(Duration.ZERO);
    assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(3));
    held.countDown();
  }

  private static ServerSocketChannel listening(Loop loop) throws IOException {
    ServerSocketChannel listener = open(ServerSocketChannel.open());
    listener.configureBlocking(false);
    listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    loop.listen(listener, List.of(loop));
    return listener;
  }

  private static void sleep(int millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static void close(Selector selector) {
    try {
      selector.close();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private static void fail() {
    throw new AssertionError("planted by a test");
  }

  /** A loop with all that a server gives it. */
  private static Loop loop(int downstreamPort, Runnable broken, String... namesAndValues)
      throws Exception {
    ModelContext context = context(namesAndValues);
    return loop("loop-1", new ReactorGroup(context, broken), context, downstreamPort);
  }

  private static ModelContext context(String... namesAndValues) throws Exception {
    Map<String, String> environment =
        new HashMap<>(Map.of("LAB_HTTP_PORT", "0", "LAB_MANAGEMENT_PORT", "0"));
    for (int i = 0; i < namesAndValues.length; i += 2) {
      environment.put(namesAndValues[i], namesAndValues[i + 1]);
    }
    ModelContext[] made = new ModelContext[1];
    ServerModel model =
        new ServerModel(
            "test",
            context -> {
              made[0] = context;
              return new NoServer();
            });
    open(LabServer.start(model, Settings.fromEnvironment(environment), () -> {}));
    return made[0];
  }

  private static Loop loop(
      String name, ReactorGroup group, ModelContext context, int downstreamPort)
      throws IOException {
    return new Loop(
        name,
        group,
        context,
        DownstreamLimits.publish(context),
        new DownstreamAddress(
            URI.create("http://127.0.0.1:%d/".formatted(downstreamPort)), Runnable::run),
        Runnable::run);
  }

  private static <T extends AutoCloseable> T open(T closeable) {
    OPENED.add(closeable);
    return closeable;
  }

  /** Its first turn takes as long as the test wants. */
  private static final class Held extends Reactor {
    private final CountDownLatch held;

    Held(String name, ReactorGroup group, CountDownLatch held) throws IOException {
      super(name, group);
      this.held = held;
    }

    @Override
    protected void handle(Exchange exchange) {
      throw new AssertionError("nobody asks");
    }

    @Override
    protected void work() {
      try {
        held.await();
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
    }
  }

  /** Something else that the loop has to see to. */
  private static final class Slow implements Ready {
    @Override
    public void ready(SelectionKey key) throws IOException {
      int _ = ((Pipe.SourceChannel) key.channel()).read(ByteBuffer.allocate(8));
      sleep(SLOW_MS);
    }

    @Override
    public void lost(IOException reason) {
      throw new AssertionError(reason);
    }
  }

  private static final class Hopeless implements Ready {
    @Override
    public void ready(SelectionKey key) throws IOException {
      throw new IOException("planted by a test");
    }

    @Override
    public void lost(IOException reason) {
      throw new IllegalStateException("planted by a test", reason);
    }
  }

  private static final class NoServer implements TrafficServer {
    @Override
    public int port() {
      return 0;
    }

    @Override
    public void stop(Duration grace) {
      // There is nothing.
    }
  }
}
