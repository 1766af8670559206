package lab.eventloop;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.Pipe;
import java.nio.channels.SelectionKey;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import lab.contract.LabServer;
import lab.contract.ModelContext;
import lab.contract.ServerModel;
import lab.contract.Settings;
import lab.contract.TrafficServer;
import lab.contract.downstream.DownstreamAddress;
import lab.contract.downstream.DownstreamLimits;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A loop whose turns the test takes itself. */
@Timeout(120)
class LoopTest {
  private static final ByteBuffer REQUEST =
      ByteBuffer.wrap("GET /health HTTP/1.1\r\nHost: lab\r\n\r\n".getBytes(US_ASCII))
          .asReadOnlyBuffer();

  /** What a slow selection takes, far more than a slice. */
  private static final int SLOW_MS = 5;

  private final List<AutoCloseable> opened = new ArrayList<>();
  private Loop loop;

  @BeforeEach
  void makeLoop() throws Exception {
    ModelContext[] made = new ModelContext[1];
    opened.add(
        LabServer.start(
            new ServerModel() {
              @Override
              public String name() {
                return "test";
              }

              @Override
              public TrafficServer start(ModelContext context) {
                made[0] = context;
                return new NoServer();
              }
            },
            Settings.fromEnvironment(Map.of("LAB_MANAGEMENT_PORT", "0")),
            () -> {}));
    loop =
        new Loop(
            "loop-1",
            made[0],
            1_000,
            new Admission(0),
            DownstreamLimits.publish(made[0]),
            new DownstreamAddress("127.0.0.1", 9, Runnable::run),
            new byte[0],
            Runnable::run,
            () -> {});
  }

  @AfterEach
  void close() throws Exception {
    for (AutoCloseable each : opened.reversed()) {
      each.close();
    }
  }

  /** It measured from the selection on, so after a slow one only one request was begun. */
  @Test
  void aSlowSelectionLeavesTheQueueItsSlice() throws Exception {
    ServerSocketChannel listener = open(ServerSocketChannel.open());
    listener.configureBlocking(false);
    listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    loop.listen(listener, List.of(loop));
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
    // On a slow machine a request may take a slice: then the next try counts.
    for (int i = 0; i < 100 && mostBegun < 2; i++) {
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
    assertThat(mostBegun).isGreaterThan(1);
  }

  @Test
  void aConnectionThatCannotBeAdoptedIsClosed() throws Exception {
    SocketChannel channel = open(SocketChannel.open());
    loop.selector().close();
    assertThatThrownBy(() -> loop.adopt(channel)).isInstanceOf(ClosedSelectorException.class);
    assertThat(channel.isOpen()).isFalse();
    assertThat(loop.openConnections()).isZero();
  }

  private <T extends AutoCloseable> T open(T closeable) {
    opened.add(closeable);
    return closeable;
  }

  /** Something else that the loop has to see to. */
  private static final class Slow implements Ready {
    @Override
    public void ready(SelectionKey key) throws IOException {
      int _ = ((Pipe.SourceChannel) key.channel()).read(ByteBuffer.allocate(8));
      try {
        Thread.sleep(SLOW_MS);
      } catch (InterruptedException e) {
        throw new IOException(e);
      }
    }

    @Override
    public void lost(IOException reason) {
      throw new AssertionError(reason);
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
