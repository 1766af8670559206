package lab.springmvc;

import java.io.IOException;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.concurrent.Executor;
import org.springframework.http.HttpMethod;
import org.springframework.http.client.ClientHttpRequest;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.JdkClientHttpRequestFactory;

/**
 * Makes requests on the JDK's client, each with the time that is left until the deadline its caller
 * has set: Spring's factory knows one timeout for all. Any number of threads.
 */
final class DeadlineRequestFactory implements ClientHttpRequestFactory {
  /** Until when the last byte must be read, by {@link System#nanoTime}. */
  static final ScopedValue<Long> DEADLINE = ScopedValue.newInstance();

  /** Writes request bodies, which no request of the lab has. */
  private static final Executor NO_BODIES = Runnable::run;

  private final HttpClient client;
  private final boolean compression;

  /**
   * @param compression whether compressed answers are asked for, as by Spring's default
   */
  DeadlineRequestFactory(HttpClient client, boolean compression) {
    this.client = client;
    this.compression = compression;
  }

  @Override
  public ClientHttpRequest createRequest(URI uri, HttpMethod method) throws IOException {
    Duration remaining = Duration.ofNanos(DEADLINE.get() - System.nanoTime());
    if (!remaining.isPositive()) {
      throw new SocketTimeoutException("deadline");
    }
    JdkClientHttpRequestFactory once = new JdkClientHttpRequestFactory(client, NO_BODIES);
    // Rounded up: it counts whole milliseconds, and what ends before its deadline is no timeout.
    once.setReadTimeout(Duration.ofMillis(remaining.toMillis() + 1));
    once.enableCompression(compression);
    return once.createRequest(uri, method);
  }
}
