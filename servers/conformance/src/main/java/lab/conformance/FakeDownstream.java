package lab.conformance;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.StandardSocketOptions;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;

/** A downstream on a free port that behaves as told. Any thread. */
public final class FakeDownstream implements AutoCloseable {
  static final String BODY = "{\"service\":\"fake\",\"delay_ms\":0}";

  /** As long as a body may be. */
  static final String LONG_BODY = "0123456789abcdef".repeat(1 << 16);

  /** Requests that {@link Behaviour#ANSWER_MOST} never answers. */
  static final int UNANSWERED = 20;

  /** From one byte to the next. */
  private static final int TRICKLE_MS = 200;

  /** What it does with the requests that come from now on. */
  public enum Behaviour {
    /** 200 with {@link #BODY}, with a Content-Length. */
    ANSWER,
    /** As {@link #ANSWER}, then closes without having said so. */
    ANSWER_THEN_CLOSE,
    /** The first request of a connection as {@link #ANSWER}; the next one finds it closed. */
    ANSWER_ONCE,
    /** As {@link #ANSWER}, but counts the connection when its client has closed it. */
    ANSWER_AND_WATCH,
    /** As {@link #ANSWER_THEN_CLOSE}, but counts a connection when the client has closed it too. */
    ANSWER_THEN_END,
    /** 200 with {@link #BODY}, up to its close. */
    ANSWER_UNTIL_CLOSE,
    /** 200 with {@link #BODY}, in chunks. */
    ANSWER_IN_CHUNKS,
    /** 200 with {@link #LONG_BODY} in chunks of a byte, the second half as {@link #HOLD}. */
    ANSWER_IN_TINY_CHUNKS,
    /** What {@link #answerWith} says. */
    ANSWER_AS_TOLD,
    /** As {@link #ANSWER}, but not before {@link #answerHeld} allows it. */
    HOLD,
    /** Reads the request and says nothing. */
    SILENT,
    /**
     * As {@link #ANSWER}, but nothing to every tenth, up to {@link #UNANSWERED}; counts each of
     * those when its client has closed it.
     */
    ANSWER_MOST,
    /** As {@link #ANSWER}, but its body comes byte by byte and takes some 6 s. */
    TRICKLE,
    /** Resets the connection after the request was read. */
    BREAK,
    /** Half of the body, and no more; then counts the connection when its client has closed it. */
    STALL_IN_BODY,
    /** Closes after half of the body. */
    BREAK_IN_BODY,
    /** A complete 500. */
    FAIL
  }

  private final ServerSocket listener;
  private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
  private final AtomicInteger connections = new AtomicInteger();
  private final AtomicInteger asked = new AtomicInteger();
  private final AtomicInteger ended = new AtomicInteger();
  private final AtomicInteger left = new AtomicInteger();
  private final Semaphore heldAnswers = new Semaphore(0, true);
  private final Set<Socket> open = ConcurrentHashMap.newKeySet();
  private volatile Behaviour behaviour = Behaviour.ANSWER;
  private volatile String told = "";

  FakeDownstream() {
    try {
      listener = new ServerSocket(0, 1_000, InetAddress.getLoopbackAddress());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    threads.execute(this::accept);
  }

  String url() {
    return "http://127.0.0.1:" + listener.getLocalPort() + "/";
  }

  public void behave(Behaviour next) {
    behaviour = next;
  }

  /** Answers each request that comes from now on with these characters. */
  void answerWith(String answer) {
    told = answer;
    behave(Behaviour.ANSWER_AS_TOLD);
  }

  /** Answers so many of the requests that are held, or will be, in the order they came. */
  public void answerHeld(int count) {
    heldAnswers.release(count);
  }

  /** Takes back what {@link #answerHeld} has allowed and nobody has asked for. */
  void forgetHeld() {
    var _ = heldAnswers.drainPermits();
  }

  /** Closes all connections, whatever was asked over them. */
  void hangUp() throws IOException {
    for (Socket each : open) {
      each.close();
    }
  }

  /** Connections accepted so far. */
  int connections() {
    return connections.get();
  }

  /**
   * Connections that it has ended, or has left in the middle of an answer, and the client has
   * closed.
   */
  int ended() {
    return ended.get();
  }

  /** Connections that were watched, and that the client has ended while nothing was asked. */
  int left() {
    return left.get();
  }

  @Override
  public void close() throws IOException {
    listener.close();
    threads.shutdownNow();
  }

  private void accept() {
    try {
      while (true) {
        Socket socket = listener.accept();
        connections.incrementAndGet();
        open.add(socket);
        threads.execute(() -> serve(socket));
      }
    } catch (IOException e) {
      // Closed: the test is over.
    }
  }

  private void serve(Socket socket) {
    boolean watched = false;
    boolean answered = false;
    try (socket) {
      BufferedReader in =
          new BufferedReader(new InputStreamReader(socket.getInputStream(), US_ASCII));
      OutputStream out = socket.getOutputStream();
      while (in.readLine() != null) {
        for (String line = in.readLine(); line != null && !line.isEmpty(); line = in.readLine()) {
          // Headers mean nothing to it.
        }
        switch (behaviour) {
          case ANSWER -> write(out, "200 OK", "Content-Length: " + BODY.length(), BODY);
          case ANSWER_ONCE -> {
            if (answered) {
              return;
            }
            write(out, "200 OK", "Content-Length: " + BODY.length(), BODY);
            answered = true;
          }
          case ANSWER_AND_WATCH -> {
            write(out, "200 OK", "Content-Length: " + BODY.length(), BODY);
            watched = true;
          }
          case ANSWER_THEN_CLOSE -> {
            write(out, "200 OK", "Content-Length: " + BODY.length(), BODY);
            return;
          }
          case ANSWER_THEN_END -> {
            write(out, "200 OK", "Content-Length: " + BODY.length(), BODY);
            socket.shutdownOutput();
            untilClosed(in);
            ended.incrementAndGet();
            return;
          }
          case ANSWER_UNTIL_CLOSE -> {
            write(out, "200 OK", "Connection: close", BODY);
            return;
          }
          case ANSWER_IN_CHUNKS -> write(out, "200 OK", "Transfer-Encoding: chunked", chunks(BODY));
          case ANSWER_IN_TINY_CHUNKS -> {
            int half = LONG_BODY.length() / 2;
            write(out, "200 OK", "Transfer-Encoding: chunked", "");
            writeInTinyChunks(out, LONG_BODY.substring(0, half));
            heldAnswers.acquire();
            writeInTinyChunks(out, LONG_BODY.substring(half));
            out.write("0\r\n\r\n".getBytes(US_ASCII));
          }
          case ANSWER_AS_TOLD -> out.write(told.getBytes(US_ASCII));
          case FAIL -> write(out, "500 Broken", "Content-Length: 2", "{}");
          case BREAK_IN_BODY -> {
            writeHalf(out);
            return;
          }
          case STALL_IN_BODY -> {
            writeHalf(out);
            untilClosed(in);
            ended.incrementAndGet();
            return;
          }
          case BREAK -> {
            socket.setOption(StandardSocketOptions.SO_LINGER, 0);
            return;
          }
          case HOLD -> {
            heldAnswers.acquire();
            write(out, "200 OK", "Content-Length: " + BODY.length(), BODY);
          }
          case ANSWER_MOST -> {
            int number = asked.incrementAndGet();
            if (number % 10 == 0 && number <= 10 * UNANSWERED) {
              untilClosed(in);
              ended.incrementAndGet();
              return;
            }
            write(out, "200 OK", "Content-Length: " + BODY.length(), BODY);
          }
          case SILENT -> Thread.sleep(60_000);
          case TRICKLE -> {
            write(out, "200 OK", "Content-Length: " + BODY.length(), "");
            for (byte each : BODY.getBytes(US_ASCII)) {
              Thread.sleep(TRICKLE_MS);
              out.write(each);
            }
          }
        }
      }
      if (watched) {
        left.incrementAndGet();
      }
    } catch (IOException | InterruptedException e) {
      // The server under test went away, or the test is over.
    } finally {
      open.remove(socket);
    }
  }

  private static void writeHalf(OutputStream out) throws IOException {
    String half = BODY.substring(0, BODY.length() / 2);
    write(out, "200 OK", "Content-Length: " + BODY.length(), half);
  }

  private static void untilClosed(BufferedReader in) {
    try {
      while (in.read() >= 0) {
        // Not closed yet.
      }
    } catch (IOException e) {
      // By a reset.
    }
  }

  private static String chunks(String body) {
    String first = body.substring(0, 7);
    String second = body.substring(7);
    return "%x\r\n%s\r\n%x;note=1\r\n%s\r\n0\r\n\r\n"
        .formatted(first.length(), first, second.length(), second);
  }

  private static void writeInTinyChunks(OutputStream out, String body) throws IOException {
    out.write(body.replaceAll("\\w", "1\r\n$0\r\n").getBytes(US_ASCII));
  }

  private static void write(OutputStream out, String status, String framing, String body)
      throws IOException {
    String answer =
        "HTTP/1.1 "
            + status
            + "\r\nContent-Type: application/json\r\n"
            + framing
            + "\r\n\r\n"
            + body;
    out.write(answer.getBytes(US_ASCII));
  }
}
