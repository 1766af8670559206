package lab.spring;

import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import lab.shell.ModelContext;
import lab.shell.TrafficServer;
import lab.spec.Answer;
import org.springframework.boot.Banner;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.web.server.WebServerException;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.context.ApplicationContextException;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.support.DefaultLifecycleProcessor;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.core.NestedExceptionUtils;
import org.springframework.http.HttpHeaders;
import org.springframework.http.ResponseEntity;

/** A Spring Boot application from its start on a port to its graceful end. */
public final class SpringServer implements TrafficServer {
  private final ConfigurableApplicationContext application;
  private final int port;

  private SpringServer(ConfigurableApplicationContext application) {
    this.application = application;
    WebServerApplicationContext web = (WebServerApplicationContext) application;
    port = requireNonNull(web.getWebServer()).getPort();
  }

  /**
   * Starts an application, in which the context is a bean. Returns when it takes requests.
   *
   * @param settings the lab's settings in Spring Boot's words, as far as only this model has them
   */
  public static SpringServer start(
      Class<?> application, ModelContext context, Map<String, Object> settings) throws IOException {
    Map<String, Object> properties = new HashMap<>(settings);
    properties.put("server.port", context.settings().httpPort());
    properties.put("server.shutdown", "graceful");
    properties.put("logging.level.root", "warn");
    // The contract stops the server, and is what may still have something to say then.
    properties.put("logging.register-shutdown-hook", false);
    try {
      return new SpringServer(
          new SpringApplicationBuilder(application)
              .bannerMode(Banner.Mode.OFF)
              .logStartupInfo(false)
              .registerShutdownHook(false)
              .properties(properties)
              .initializers(
                  (GenericApplicationContext beans) ->
                      beans.registerBean(ModelContext.class, () -> context))
              .run());
    } catch (WebServerException | ApplicationContextException e) {
      throw new IOException(NestedExceptionUtils.getMostSpecificCause(e));
    }
  }

  /** An answer as handlers return it. */
  public static ResponseEntity<byte[]> entity(Answer answer) {
    return ResponseEntity.status(answer.status())
        .header(HttpHeaders.CONTENT_TYPE, answer.contentType())
        .body(answer.body());
  }

  @Override
  public int port() {
    return port;
  }

  /**
   * In Spring's own order: no new connections, requests under way, the server, the beans. A grace
   * of less than a second counts as a second. If the grace ends just before Reactor Netty has
   * stopped, Spring Boot 4.1.1 waits for ever: {@code GracefulShutdown.abort} waits for a stop to
   * begin that is over already.
   */
  @Override
  public void stop(Duration grace) {
    application
        .getBean(DefaultLifecycleProcessor.class)
        .setTimeoutPerShutdownPhase(Math.max(1_000, grace.toMillis()));
    application.close();
  }
}
