package lab.quarkus;

import io.quarkus.vertx.VertxOptionsCustomizer;
import io.vertx.core.VertxOptions;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.metrics.MetricsOptions;
import io.vertx.core.net.SocketAddress;
import io.vertx.core.spi.VertxMetricsFactory;
import io.vertx.core.spi.metrics.HttpServerMetrics;
import io.vertx.core.spi.metrics.VertxMetrics;
import jakarta.inject.Singleton;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Counts the open client connections, which Vert.x tells to its metrics only, and tells how many
 * event loops Quarkus lets it have.
 */
@Singleton
final class Connections implements VertxOptionsCustomizer {
  private final AtomicInteger open = new AtomicInteger();
  private volatile int loops;

  int open() {
    return open.get();
  }

  /** When Quarkus has started. */
  int loops() {
    return loops;
  }

  @Override
  @SuppressWarnings("deprecation") // In favour of Vert.x' builder, which is Quarkus' alone.
  public void accept(VertxOptions options) {
    loops = options.getEventLoopPoolSize();
    VertxMetricsFactory factory = each -> new Metrics();
    options.setMetricsOptions(new MetricsOptions().setEnabled(true).setFactory(factory));
  }

  private final class Metrics implements VertxMetrics {
    @Override
    public HttpServerMetrics<?, ?, ?> createHttpServerMetrics(
        HttpServerOptions options, SocketAddress localAddress) {
      return new ServerMetrics();
    }
  }

  private final class ServerMetrics implements HttpServerMetrics<Object, Object, Object> {
    @Override
    public @Nullable Object connected(SocketAddress remoteAddress, String remoteName) {
      open.incrementAndGet();
      return null;
    }

    @Override
    public void disconnected(@Nullable Object socket, SocketAddress remoteAddress) {
      open.decrementAndGet();
    }
  }
}
