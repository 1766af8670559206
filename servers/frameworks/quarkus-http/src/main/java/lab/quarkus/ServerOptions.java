package lab.quarkus;

import io.quarkus.vertx.http.HttpServerOptionsCustomizer;
import io.vertx.core.http.HttpServerOptions;
import jakarta.inject.Singleton;
import lab.shell.ModelContext;

/** Sets what Quarkus has no property for, and tells what it has set itself. */
@Singleton
final class ServerOptions implements HttpServerOptionsCustomizer {
  private final ModelContext context;

  ServerOptions(ModelContext context) {
    this.context = context;
  }

  @Override
  public void customizeHttpServer(HttpServerOptions options) {
    options.setTcpNoDelay(context.settings().tcpNodelay());
    context.knobs().ofFramework("longest_request_line", options.getMaxInitialLineLength());
    context.knobs().ofFramework("longest_head", options.getMaxHeaderSize());
    context.knobs().ofFramework("http2", options.isHttp2ClearTextEnabled());
  }
}
