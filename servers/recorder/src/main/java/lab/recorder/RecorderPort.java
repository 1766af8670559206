package lab.recorder;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import jdk.jfr.FlightRecorder;
import lab.spec.Answer;

/**
 * The port of {@link RecorderAgent}, on daemon threads of its own. Whoever reaches it may ask
 * whether it is there; a recording shows the service's code, so it needs the lab's token.
 */
final class RecorderPort {
  private RecorderPort() {}

  /** Answers at this address, to those whose token has the sum in this file, read per call. */
  static HttpServer open(InetSocketAddress address, Path sum) throws IOException {
    if (!FlightRecorder.isAvailable()) {
      throw new IllegalStateException("it has no Flight Recorder");
    }
    ThreadFactory daemons = Thread.ofPlatform().daemon().name("lab-recorder-", 1).factory();
    Recorder recorder = new Recorder();
    HttpServer server = HttpServer.create(address, 0);
    server.createContext(
        "/", exchange -> Exchanges.answer(exchange, () -> answer(recorder, sum, exchange)));
    server.setExecutor(Executors.newSingleThreadExecutor(daemons));
    // Its own thread is a daemon as the one that starts it: the service ends when it has ended.
    daemons.newThread(server::start).start();
    return server;
  }

  private static Answer answer(Recorder recorder, Path sum, HttpExchange exchange)
      throws IOException {
    if (Exchanges.call(exchange).equals("GET /health")) {
      return Answer.ok(Map.of("status", "up"));
    }
    String known = Files.isReadable(sum) ? Files.readString(sum, UTF_8).strip() : "";
    if (!new ManagementToken(known).isGiven(exchange)) {
      return ManagementToken.NOT_GIVEN;
    }
    Answer recorded = recorder.answer(exchange);
    return recorded != null
        ? recorded
        : Answer.error(404, "no such call; there are GET /health, POST " + Recorder.CALLS);
  }
}
