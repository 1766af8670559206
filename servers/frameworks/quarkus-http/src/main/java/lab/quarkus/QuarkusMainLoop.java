package lab.quarkus;

import io.quarkus.runtime.Quarkus;
import io.quarkus.runtime.QuarkusApplication;
import io.quarkus.vertx.http.HttpServer;
import jakarta.inject.Inject;

/** What runs once Quarkus has started: tells the port, and waits for the end. */
public final class QuarkusMainLoop implements QuarkusApplication {
  private final HttpServer http;

  @Inject
  QuarkusMainLoop(HttpServer http) {
    this.http = http;
  }

  @Override
  public int run(String... args) {
    QuarkusHttp.current().started(http.getPort());
    Quarkus.waitForExit();
    return 0;
  }
}
