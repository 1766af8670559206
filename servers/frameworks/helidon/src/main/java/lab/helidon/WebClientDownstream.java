package lab.helidon;

import io.helidon.webclient.api.HttpClientResponse;
import io.helidon.webclient.api.Proxy;
import io.helidon.webclient.api.WebClient;
import io.helidon.webclient.api.WebClientConfig;
import io.prometheus.metrics.core.metrics.Counter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import lab.shell.ModelContext;
import lab.spec.Settings;
import lab.work.blocking.DownstreamClient;

/**
 * Helidon's WebClient: blocks the calling virtual thread, over connections that it keeps itself.
 * The deadline becomes its read timeout, which begins anew with each read of a socket.
 */
final class WebClientDownstream implements DownstreamClient {
  private static final int OK = 200;

  private final ConnectMarks connects = new ConnectMarks();
  private final Counter retries;
  private final WebClient client;

  WebClientDownstream(ModelContext context) {
    Settings settings = context.settings();
    retries = context.downstream().retries();
    WebClientConfig.Builder builder =
        WebClient.builder()
            .baseUri(settings.downstreamUrl())
            .connectTimeout(settings.downstreamTimeout())
            .connectionListener(connects);
    if (!settings.shipped()) {
      builder
          .followRedirects(false)
          .proxy(Proxy.noProxy())
          .connectionCacheSize(Settings.DOWNSTREAM_CONNECTIONS.max())
          .shareConnectionCache(false)
          .socketOptions(options -> options.tcpNoDelay(true));
    }
    client = builder.build();
    WebClientConfig told = client.prototype();
    context.knobs().keepsIdleDownstreamByItself();
    context.knobs().ofFramework("client_connections_kept", told.connectionCacheSize());
    context.knobs().ofFramework("client_redirects", told.followRedirects());
    context.knobs().ofFramework("client_tcp_nodelay", told.socketOptions().tcpNoDelay());
  }

  @Override
  public byte[] get(long deadlineNanos) throws IOException, InterruptedException {
    try (HttpClientResponse response = ask(deadlineNanos)) {
      if (response.status().code() != OK) {
        throw new IOException("status " + response.status().code());
      }
      return response.as(byte[].class);
    } catch (UncheckedIOException e) {
      throw e.getCause();
    } catch (RuntimeException e) {
      // So Helidon says that a connection was closed on it, or that this thread is to stop.
      if (e.getCause() instanceof InterruptedException) {
        throw new InterruptedException("stopped in a downstream call");
      }
      throw new IOException(e);
    }
  }

  @Override
  public void close() {
    client.closeResource();
  }

  private HttpClientResponse ask(long deadlineNanos) throws SocketTimeoutException {
    Duration timeout = remaining(deadlineNanos);
    ConnectMarks.Mark connect = new ConnectMarks.Mark();
    try {
      return connects.calling(connect, () -> client.get().readTimeout(timeout).request());
    } catch (RuntimeException e) {
      if (connect.isMade() || !isStale(e)) {
        throw e;
      }
      // The downstream had closed a kept connection, which Helidon saw too late: on a new one.
      retries.inc();
      return client.get().keepAlive(false).readTimeout(remaining(deadlineNanos)).request();
    }
  }

  private static boolean isStale(RuntimeException failure) {
    return switch (failure.getCause()) {
      case SocketTimeoutException late -> false;
      case ConnectException refused -> false;
      case InterruptedException stopped -> false;
      case null, default -> true;
    };
  }

  private static Duration remaining(long deadlineNanos) throws SocketTimeoutException {
    long nanos = deadlineNanos - System.nanoTime();
    if (nanos <= 0) {
      throw new SocketTimeoutException("no time left to ask in");
    }
    // Socket timeouts are in milliseconds, and 0 would mean for ever.
    return Duration.ofMillis(Duration.ofNanos(nanos).toMillis() + 1);
  }
}
