package lab.quarkus;

import io.quarkus.vertx.http.HttpServerOptionsCustomizer;
import io.vertx.core.http.HttpServerOptions;
import jakarta.inject.Singleton;
import lab.contract.ModelContext;

/** Sets what Quarkus has no property for. */
@Singleton
final class NoDelay implements HttpServerOptionsCustomizer {
  private final boolean noDelay;

  NoDelay(ModelContext context) {
    noDelay = context.settings().tcpNodelay();
  }

  @Override
  public void customizeHttpServer(HttpServerOptions options) {
    options.setTcpNoDelay(noDelay);
  }
}
