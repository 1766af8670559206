package lab.conformance;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
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

/** A downstream on a free port, whose behaviour a test chooses. Any thread. */
public final class FakeDownstream implements AutoCloseable {
  static final String BODY = "{\"service\":\"fake\",\"delay_ms\":0}";

  /** Requests that {@link Behaviour#ANSWER_MOST} never answers. */
  static final int UNANSWERED = 20;

  /** What it does with the requests that come from now on. */
  public enum Behaviour {
    /** 200 with {@link #BODY}. */
    ANSWER,
    /** Closes each connection over which it has answered before; else as {@link #ANSWER}. */
    ANSWER_ONCE,
    /** As {@link #answerWith} says; counts the connection when its client has closed it. */
    ANSWER_WITH,
    /** As {@link #ANSWER}, but not before {@link #answerHeld} allows it. */
    HOLD,
    /**
     * As {@link #ANSWER}, but nothing to every tenth, up to {@link #UNANSWERED}; counts each of
     * those when its client has closed it.
     */
    ANSWER_MOST,
    /** As {@link #ANSWER}, but the body comes byte by byte, all of it in 1.2 s. */
    TRICKLE
  }

  private final ServerSocket listener;
  private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
  private final AtomicInteger connections = new AtomicInteger();
  private final AtomicInteger asked = new AtomicInteger();
  private final AtomicInteger ended = new AtomicInteger();
  private final Semaphore heldAnswers = new Semaphore(0, true);
  private final Set<Socket> open = ConcurrentHashMap.newKeySet();
  private volatile Behaviour behaviour = Behaviour.ANSWER;
  private volatile String script = "";
  private volatile boolean closes;

  FakeDownstream() throws IOException {
    listener = new ServerSocket(0, 1_000, InetAddress.getLoopbackAddress());
    threads.execute(this::accept);
  }

  String url() {
    return "http://127.0.0.1:" + listener.getLocalPort() + "/";
  }

  public void behave(Behaviour next) {
    asked.set(0);
    behaviour = next;
  }

  /** Answers with these characters from now on; without any by a reset. */
  void answerWith(String answer, boolean andCloses) {
    script = answer;
    closes = andCloses;
    behave(Behaviour.ANSWER_WITH);
  }

  /** Answers so many of the requests that are held, or will be, in the order they came. */
  public void answerHeld(int count) {
    heldAnswers.release(count);
  }

  /** Takes back what {@link #answerHeld} has allowed and no request has used. */
  void forgetHeld() {
    var _ = heldAnswers.drainPermits();
  }

  void hangUp() throws IOException {
    for (Socket each : open) {
      each.close();
    }
  }

  /** Connections accepted so far. */
  int connections() {
    return connections.get();
  }

  /** Connections with an unfinished answer, or watched, that the client has closed. */
  int ended() {
    return ended.get();
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
    boolean isWatched = false;
    boolean hasAnswered = false;
    try (socket) {
      BufferedReader in =
          new BufferedReader(new InputStreamReader(socket.getInputStream(), US_ASCII));
      OutputStream out = socket.getOutputStream();
      while (in.readLine() != null) {
        for (String line = in.readLine(); line != null && !line.isEmpty(); line = in.readLine()) {
          // It ignores headers.
        }
        isWatched = false;
        switch (behaviour) {
          case ANSWER -> write(out, ok(BODY));
          case ANSWER_ONCE -> {
            if (hasAnswered) {
              return;
            }
            write(out, ok(BODY));
          }
          case ANSWER_WITH -> {
            if (script.isEmpty()) {
              socket.setOption(StandardSocketOptions.SO_LINGER, 0);
              return;
            }
            write(out, script);
            if (closes) {
              return;
            }
            isWatched = true;
          }
          case HOLD -> {
            heldAnswers.acquire();
            write(out, ok(BODY));
          }
          case ANSWER_MOST -> {
            int number = asked.incrementAndGet();
            isWatched = number % 10 == 0 && number <= 10 * UNANSWERED;
            write(out, isWatched ? "" : ok(BODY));
          }
          case TRICKLE -> {
            write(out, ok(BODY).replace(BODY, ""));
            for (byte each : BODY.getBytes(US_ASCII)) {
              Thread.sleep(40);
              out.write(each);
            }
          }
        }
        hasAnswered = true;
      }
    } catch (IOException | InterruptedException e) {
      // The server under test went away, or the test is over.
    } finally {
      if (isWatched) {
        ended.incrementAndGet();
      }
      open.remove(socket);
    }
  }

  static String ok(String body) {
    return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        .formatted(body.length(), body);
  }

  private static void write(OutputStream out, String answer) throws IOException {
    out.write(answer.getBytes(US_ASCII));
  }
}
