package lab.quarkus;

import io.quarkus.runtime.StartupEvent;
import io.quarkus.vertx.VertxOptionsCustomizer;
import io.quarkus.vertx.http.HttpServerOptionsCustomizer;
import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.metrics.MetricsOptions;
import io.vertx.core.net.SocketAddress;
import io.vertx.core.spi.VertxMetricsFactory;
import io.vertx.core.spi.metrics.HttpServerMetrics;
import io.vertx.core.spi.metrics.VertxMetrics;
import jakarta.enterprise.event.Observes;
import jakarta.inject.Singleton;
import java.util.concurrent.atomic.AtomicInteger;
import lab.observe.LoopThreads;
import lab.shell.ModelContext;
import org.jspecify.annotations.Nullable;

/**
 * Sets on Vert.x what Quarkus has no property for, and shows what is in force: loops, transport,
 * limits, and open client connections, which Vert.x reports to its metrics only.
 */
@Singleton
final class VertxParts implements VertxOptionsCustomizer, HttpServerOptionsCustomizer {
  private static final String THREADS = "vert.x-eventloop-thread-";

  private final ModelContext context;
  private final AtomicInteger openConnections = new AtomicInteger();
  private volatile int loops;

  VertxParts(ModelContext context) {
    this.context = context;
  }

  @Override
  @SuppressWarnings("deprecation") // In favour of Vert.x' builder, which is Quarkus' alone.
  public void accept(VertxOptions options) {
    loops = options.getEventLoopPoolSize();
    VertxMetricsFactory factory = each -> new Metrics();
    options.setMetricsOptions(new MetricsOptions().setEnabled(true).setFactory(factory));
  }

  @Override
  public void customizeHttpServer(HttpServerOptions options) {
    context.knobs().ofFramework("longest_request_line", options.getMaxInitialLineLength());
    context.knobs().ofFramework("longest_head", options.getMaxHeaderSize());
    context.knobs().ofFramework("http2", options.isHttp2ClearTextEnabled());
  }

  void started(@Observes StartupEvent event, Vertx vertx) {
    context.knobs().hasLoops(loops);
    LoopThreads.register(context.registry(), THREADS, loops, openConnections::get);
    boolean isNative = vertx.isNativeTransportEnabled();
    if (context.settings().shipped() && !isNative) {
      throw new IllegalStateException(
          "no native transport", vertx.unavailableNativeTransportCause());
    }
    context.knobs().ofFramework("transport", isNative ? "native" : "nio");
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
      openConnections.incrementAndGet();
      return null;
    }

    @Override
    public void disconnected(@Nullable Object socket, SocketAddress remoteAddress) {
      openConnections.decrementAndGet();
    }
  }
}
