package lab.reactor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.NotYetConnectedException;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import lab.shell.LabServer;
import lab.shell.ModelContext;
import lab.shell.ServerModel;
import lab.shell.TrafficServer;
import lab.spec.Answer;
import lab.spec.Settings;
import lab.wire.Request;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How reactors, and what they hold, end. A test takes their turns. */
@Timeout(60)
class ReactorTest {
  private final List<AutoCloseable> opened = new ArrayList<>();
  private final List<SocketChannel> clients = new ArrayList<>();
  private ReactorGroup group;
  private Reactor reactor;
  private SocketChannel channel;
  private Exchange exchange;

  @BeforeEach
  void begin() throws Exception {
    ModelContext[] context = new ModelContext[1];
    ServerModel model =
        new ServerModel(
            "test",
            given -> {
              context[0] = given;
              return new NoServer();
            });
    Map<String, String> environment = Map.of("LAB_HTTP_PORT", "0", "LAB_MANAGEMENT_PORT", "0");
    opened.add(LabServer.start(model, Settings.fromEnvironment(environment), () -> {}));
    group = new ReactorGroup(context[0], () -> {});
    reactor = new NoLane("reactor-1", group);
    opened.add(reactor.selector());
    // Whoever writes to it gets an exception that is no IOException.
    channel = SocketChannel.open();
    opened.add(channel);
    channel.configureBlocking(false);
    SelectionKey key = channel.register(reactor.selector(), 0);
    Connection connection = new Connection(reactor, channel, key);
    assertThat(group.admits()).isTrue();
    exchange = new Exchange(group, connection, new Request("GET", "/health", null, true, true), 0);
    exchange.begin();
  }

  @AfterEach
  void close() throws Exception {
    for (AutoCloseable each : opened.reversed()) {
      each.close();
    }
  }

  /** As where no memory is left for it. */
  @Test
  void anAnswerThatCannotBeWrittenClosesTheConnection() throws Exception {
    assertThatThrownBy(() -> exchange.answer(Answer.QUEUE_FULL))
        .isInstanceOf(NotYetConnectedException.class);
    reactor.turn();
    assertThat(channel.isOpen()).isFalse();
    assertThat(group.admission.admitted()).isZero();
  }

  /** Of a crowd that has left, none costs the reactor a turn. */
  @Test
  void toGiveUpWhatIsClosedDoesNotWakeTheReactor() throws Exception {
    channel.close();
    exchange.abort();
    boolean[] slept = new boolean[1];
    Timers.Timer timer = reactor.timers().timer(() -> slept[0] = true);
    reactor.timers().set(timer, System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(200));
    reactor.turn();
    assertThat(slept[0]).isTrue();
    assertThat(group.admission.admitted()).isZero();
  }

  /** Whether its reactor was about to end as it was dealt out, or had. */
  @Test
  void whoIsDealtToAReactorThatEndsIsClosed() throws Exception {
    List<NoLane> reactors = group.open("reactor-", 2, name -> new NoLane(name, group));
    connect();
    while (reactors.getFirst().openConnections() == 0) {
      reactors.getFirst().turn();
    }
    group.stop(Duration.ZERO);
    reactors.getLast().run();
    connect();
    reactors.getFirst().run();
    for (SocketChannel client : clients) {
      assertThat(client.read(ByteBuffer.allocate(1))).isNegative();
    }
  }

  /** One for each of two reactors. */
  private void connect() throws IOException {
    for (int i = 0; i < 2; i++) {
      SocketChannel client =
          SocketChannel.open(new InetSocketAddress(InetAddress.getLoopbackAddress(), group.port()));
      opened.add(client);
      clients.add(client);
    }
  }

  private static final class NoLane extends Reactor {
    NoLane(String name, ReactorGroup group) throws IOException {
      super(name, group);
    }

    @Override
    protected void handle(Exchange exchange) {
      throw new AssertionError("nobody asks");
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
