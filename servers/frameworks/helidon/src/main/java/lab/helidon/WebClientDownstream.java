package lab.helidon;

import io.helidon.webclient.api.ConnectedSocketChannelInfo;
import io.helidon.webclient.api.ConnectedSocketInfo;
import io.helidon.webclient.api.ConnectionListener;
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
  /** Whether a call has connected. The caller's thread only, on which Helidon's client connects. */
  private static final class Mark {
    private boolean isMade;
  }

  /** Tells a call over a new connection from one over a kept one, which the client does not say. */
  private static final class ConnectMarks implements ConnectionListener {
    @Override
    public void socketConnected(ConnectedSocketInfo socket) {
      if (CALL.isBound()) {
        CALL.get().isMade = true;
      }
    }

    @Override
    public void socketChannelConnected(ConnectedSocketChannelInfo socket) {
      // Only sockets of Unix domains.
    }
  }

  private static final ScopedValue<Mark> CALL = ScopedValue.newInstance();

  private final Counter retries;
  private final WebClient client;

  WebClientDownstream(ModelContext context) {
    Settings settings = context.settings();
    retries = context.downstream().retries();
    WebClientConfig.Builder builder =
        WebClient.builder()
            .baseUri(settings.downstreamUrl())
            .connectTimeout(settings.downstreamTimeout())
            .connectionListener(new ConnectMarks());
    if (!settings.shipped()) {
      builder
          .followRedirects(false)
          .proxy(Proxy.noProxy())
          .connectionCacheSize(Settings.DOWNSTREAM_CONNECTIONS.max())
          .shareConnectionCache(false)
          .socketOptions(options -> options.tcpNoDelay(true));
    }
    client = builder.build();
    WebClientConfig config = client.prototype();
    context.knobs().hasNo(Settings.DOWNSTREAM_KEEP_IDLE_S.name());
    context.knobs().ofFramework("client_connections_kept", config.connectionCacheSize());
    context.knobs().ofFramework("client_redirects", config.followRedirects());
    context.knobs().ofFramework("client_tcp_nodelay", config.socketOptions().tcpNoDelay());
  }

  @Override
  public byte[] get(long deadlineNanos) throws IOException, InterruptedException {
    try (HttpClientResponse response = ask(deadlineNanos)) {
      if (response.status().code() != 200) {
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
    Mark connect = new Mark();
    try {
      return ScopedValue.where(CALL, connect)
          .call(() -> client.get().readTimeout(timeout).request());
    } catch (RuntimeException e) {
      if (connect.isMade || !isStale(e)) {
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
