package lab.perconnection;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import lab.shell.LabServer;
import lab.shell.ServerModel;
import lab.spec.Settings;
import org.junit.jupiter.api.Test;

class ConnectionServerTest {
  private static final String CANNOT_ACCEPT = "cannot accept for now: {0}";

  private static final String METRICS =
      "GET /metrics HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n";

  private final List<String> warned = Collections.synchronizedList(new ArrayList<>());

  /** Nobody else has to wait for it: there is nothing wrong with accepting. */
  @Test
  void aConnectionThatFailsAtOnceIsNoFailedAccept() throws Exception {
    assertThat(statusAfter(new Broken(new SocketException("planted by a test"))))
        .startsWith("HTTP/1.1 200 ");
    assertThat(warned).doesNotContain(CANNOT_ACCEPT);
  }

  /** As where no file descriptor is left, for a while. */
  @Test
  void anAcceptThatFailsIsTriedAgain() throws Exception {
    IOException tooMany = new IOException("Too many open files, planted by a test");
    assertThat(statusAfter(tooMany, tooMany)).startsWith("HTTP/1.1 200 ");
    assertThat(warned).containsExactly(CANNOT_ACCEPT, CANNOT_ACCEPT);
  }

  /** A server that accepts no more must not look alive. */
  @Test
  void theAcceptorSurvivesABug() throws Exception {
    assertThat(
            statusAfter(
                new IllegalStateException("planted by a test"),
                new Broken(new IllegalStateException("planted by a test"))))
        .startsWith("HTTP/1.1 200 ");
  }

  /** As where the kernel gives no more threads: its connection is given up, and is none. */
  @Test
  void aConnectionWithoutAThreadIsClosedAndForgotten() throws Exception {
    AtomicInteger asked = new AtomicInteger();
    ServerModel model =
        new ServerModel(
            "test",
            context ->
                new ConnectionServer(
                    context,
                    new ServerSocket(0),
                    work ->
                        asked.getAndIncrement() == 0 ? null : Thread.ofVirtual().unstarted(work)));
    Map<String, String> environment = Map.of("LAB_MANAGEMENT_PORT", "0");
    try (LabServer server =
            LabServer.start(model, Settings.fromEnvironment(environment), () -> {});
        Socket lost = new Socket(InetAddress.getLoopbackAddress(), server.httpPort());
        Socket client = new Socket(InetAddress.getLoopbackAddress(), server.httpPort())) {
      lost.setSoTimeout(60_000);
      assertThat(lost.getInputStream().read()).isNegative();
      client.setSoTimeout(60_000);
      client.getOutputStream().write(METRICS.getBytes(US_ASCII));
      assertThat(new String(client.getInputStream().readAllBytes(), US_ASCII))
          .contains("\nlab_http_connections_open 1.0\n");
    }
  }

  /** What a client gets that asks when these have come of accepting: sockets, or exceptions. */
  private String statusAfter(Object... accepted) throws Exception {
    Deque<Object> first = new ConcurrentLinkedDeque<>(Arrays.asList(accepted));
    Handler handler = new Remembering();
    Logger log = Logger.getLogger(ConnectionServer.class.getName());
    log.addHandler(handler);
    Map<String, String> environment = Map.of("LAB_MANAGEMENT_PORT", "0");
    try (LabServer server =
            LabServer.start(model(first), Settings.fromEnvironment(environment), () -> {});
        Socket client = new Socket(InetAddress.getLoopbackAddress(), server.httpPort())) {
      client.setSoTimeout(60_000);
      client
          .getOutputStream()
          .write(
              "GET /health HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n".getBytes(US_ASCII));
      return new String(client.getInputStream().readAllBytes(), US_ASCII);
    } finally {
      log.removeHandler(handler);
    }
  }

  private static ServerModel model(Deque<Object> first) {
    return new ServerModel("test", context -> new ConnectionServer(context, new Planted(first)));
  }

  private static final class Planted extends ServerSocket {
    private final Deque<Object> first;

    Planted(Deque<Object> first) throws IOException {
      super(0);
      this.first = first;
    }

    @Override
    public Socket accept() throws IOException {
      return switch (first.poll()) {
        case Socket socket -> socket;
        case IOException failure -> throw failure;
        case RuntimeException bug -> throw bug;
        case null, default -> super.accept();
      };
    }
  }

  /** An accepted socket that cannot be used. */
  private static final class Broken extends Socket {
    private final Exception failure;

    Broken(Exception failure) {
      this.failure = failure;
    }

    @Override
    public void setTcpNoDelay(boolean on) throws SocketException {
      if (failure instanceof SocketException gone) {
        throw gone;
      }
      throw new IllegalStateException(failure);
    }
  }

  private final class Remembering extends Handler {
    @Override
    public void publish(LogRecord line) {
      warned.add(line.getMessage());
    }

    @Override
    public void flush() {
      // There is nothing.
    }

    @Override
    public void close() {
      // There is nothing.
    }
  }
}
