package lab.front;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import lab.shell.LabServer;
import lab.spec.Settings;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What passes between fronts and workers, when many of both meet. */
@Timeout(120)
class FrontServerTest {
  private static final int CLIENTS = 16;
  private static final int BURSTS = 150;

  static Stream<Function<Settings, ExecutorService>> workers() {
    return Stream.of(
        settings -> Executors.newFixedThreadPool(4),
        settings -> Executors.newVirtualThreadPerTaskExecutor());
  }

  /**
   * Requests come in bursts and in any pieces, also while the one before is being answered: each
   * has its answer, in order, and no connection is forgotten by its worker and its front.
   */
  @ParameterizedTest
  @MethodSource("workers")
  void everyRequestOfABurstIsAnsweredInOrder(Function<Settings, ExecutorService> workers)
      throws Exception {
    try (LabServer server = start(workers, "LAB_FRONTS", "2");
        ExecutorService clients = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<Integer>> answered = new ArrayList<>();
      int asked = 0;
      for (int i = 0; i < CLIENTS; i++) {
        Random random = new Random(i);
        int[] bursts = random.ints(BURSTS, 1, 6).toArray();
        asked += IntStream.of(bursts).sum();
        answered.add(clients.submit(() -> ask(server.httpPort(), bursts, random)));
      }
      int sum = 0;
      for (Future<Integer> each : answered) {
        sum += each.get();
      }
      assertThat(sum).isEqualTo(asked);
    }
  }

  @Test
  void whatHasNoRoomIsWrittenByTheFrontAndTheWorkerIsFree() throws Exception {
    try (LabServer server = start(settings -> Executors.newFixedThreadPool(1));
        Socket deaf = new Socket(InetAddress.getLoopbackAddress(), server.httpPort());
        Socket other = new Socket(InetAddress.getLoopbackAddress(), server.httpPort())) {
      String all = "GET /metrics HTTP/1.1\r\nHost: lab\r\n\r\n".repeat(1_000);
      deaf.getOutputStream().write(all.getBytes(US_ASCII));
      other.setSoTimeout(60_000);
      assertThat(ask(other, 1, new Random(1))).isEqualTo(1);
      deaf.setSoTimeout(60_000);
      InputStream in = deaf.getInputStream();
      int read = 0;
      for (int i = 0; i < 1_000; i++) {
        read += readAnswer(in).contains("200 OK") ? 1 : 0;
      }
      assertThat(read).isEqualTo(1_000);
    }
  }

  /** Its worker would wait for a minute. */
  @Test
  void nobodyWorksForAClientThatHasLeft() throws Exception {
    Semaphore held = new Semaphore(0);
    ThreadPoolExecutor pool =
        new ThreadPoolExecutor(1, 1, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
    pool.execute(held::acquireUninterruptibly);
    try (LabServer server = start(settings -> pool)) {
      try (Socket gone = new Socket(InetAddress.getLoopbackAddress(), server.httpPort())) {
        gone.setSoLinger(true, 0);
        gone.getOutputStream()
            .write("GET /?wait_ms=60000 HTTP/1.1\r\nHost: lab\r\n\r\n".getBytes(US_ASCII));
        awaitQueued(pool, 1);
      }
      // The front accepts and reads it after it has seen the other leave.
      try (Socket other = new Socket(InetAddress.getLoopbackAddress(), server.httpPort())) {
        other.setSoTimeout(30_000);
        other
            .getOutputStream()
            .write("GET /health HTTP/1.1\r\nHost: lab\r\n\r\n".getBytes(US_ASCII));
        awaitQueued(pool, 2);
        held.release();
        assertThat(readAnswer(other.getInputStream())).contains("200 OK");
      }
    }
  }

  private static void awaitQueued(ThreadPoolExecutor pool, int count) throws InterruptedException {
    while (pool.getQueue().size() < count) {
      Thread.sleep(1);
    }
  }

  private static LabServer start(
      Function<Settings, ExecutorService> workers, String... namesAndValues) throws Exception {
    Map<String, String> environment =
        new HashMap<>(Map.of("LAB_HTTP_PORT", "0", "LAB_MANAGEMENT_PORT", "0"));
    for (int i = 0; i < namesAndValues.length; i += 2) {
      environment.put(namesAndValues[i], namesAndValues[i + 1]);
    }
    return LabServer.start(
        FrontServer.model("test", workers), Settings.fromEnvironment(environment), () -> {});
  }

  private static int ask(int port, int[] bursts, Random random) throws IOException {
    int answered = 0;
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
      socket.setTcpNoDelay(true);
      socket.setSoTimeout(60_000);
      for (int count : bursts) {
        answered += ask(socket, count, random);
      }
    }
    return answered;
  }

  /** Returns how many were answered, each with what it asked for. */
  private static int ask(Socket socket, int count, Random random) throws IOException {
    StringBuilder burst = new StringBuilder();
    int[] limits = random.ints(count, 2, 500).toArray();
    for (int limit : limits) {
      burst.append("GET /compute?limit=").append(limit).append(" HTTP/1.1\r\nHost: lab\r\n\r\n");
    }
    byte[] bytes = burst.toString().getBytes(US_ASCII);
    for (int from = 0; from < bytes.length; ) {
      int length = Math.min(bytes.length - from, 1 + random.nextInt(200));
      socket.getOutputStream().write(bytes, from, length);
      from += length;
    }
    int answered = 0;
    for (int limit : limits) {
      answered += readAnswer(socket.getInputStream()).contains("{\"limit\":" + limit + ",") ? 1 : 0;
    }
    return answered;
  }

  private static String readAnswer(InputStream in) throws IOException {
    StringBuilder head = new StringBuilder();
    while (head.indexOf("\r\n\r\n") < 0) {
      int next = in.read();
      if (next < 0) {
        throw new IOException("closed");
      }
      head.append((char) next);
    }
    int at = head.indexOf("Content-Length: ") + "Content-Length: ".length();
    int length = Integer.parseInt(head.substring(at, head.indexOf("\r", at)));
    return head + new String(in.readNBytes(length), US_ASCII);
  }
}
