package lab.vertx;

import static java.util.Objects.requireNonNull;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import lab.work.nonblocking.DownstreamCalls;

/** The verticles' clients of the downstream, found by the loop's thread that a call begins on. */
final class LoopClients implements DownstreamCalls.Client {
  private final Map<Thread, HttpClientDownstream> byLoop = new ConcurrentHashMap<>();

  void add(HttpClientDownstream client) {
    byLoop.put(Thread.currentThread(), client);
  }

  @Override
  public CompletionStage<byte[]> get(Duration remaining) {
    HttpClientDownstream client = byLoop.get(Thread.currentThread());
    // No loop's thread is the one that has just raised the cap: then any loop will do.
    return client != null ? client.get(remaining) : any().get(remaining);
  }

  private HttpClientDownstream any() {
    return requireNonNull(byLoop.values().iterator().next());
  }
}
