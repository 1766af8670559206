package lab.contract;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import jdk.jfr.FlightRecorder;

/** The port of {@link RecorderAgent}, on daemon threads of its own. */
final class RecorderPort {
  private RecorderPort() {}

  /**
   * Answers on this port from now on; 0 is any that is free.
   *
   * @throws IllegalStateException where this JVM has no Flight Recorder
   */
  static HttpServer open(int port) throws IOException {
    if (!FlightRecorder.isAvailable()) {
      throw new IllegalStateException("it has no Flight Recorder");
    }
    ThreadFactory daemons = Thread.ofPlatform().daemon().name("lab-recorder-", 1).factory();
    RecordingCalls recordings = new RecordingCalls();
    HttpServer server = HttpServer.create(new InetSocketAddress(port), 0);
    server.createContext("/", exchange -> handle(recordings, exchange));
    server.setExecutor(Executors.newSingleThreadExecutor(daemons));
    // Its own thread is a daemon as the one that starts it: the service ends when it has ended.
    daemons.newThread(server::start).start();
    return server;
  }

  private static void handle(RecordingCalls recordings, HttpExchange exchange) throws IOException {
    try (exchange) {
      Answer answer = recordings.answer(exchange);
      if (answer == null) {
        answer =
            Exchanges.call(exchange).equals("GET /health")
                ? Answer.ok(Map.of("status", "up"))
                : Answer.error(
                    404, "no such call; there are GET /health, POST " + RecordingCalls.NAMES);
      }
      Exchanges.send(exchange, answer);
    }
  }
}
