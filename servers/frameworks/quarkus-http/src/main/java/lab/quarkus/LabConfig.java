package lab.quarkus;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import lab.shell.LabServer;
import lab.spec.Settings;
import org.eclipse.microprofile.config.spi.ConfigSource;
import org.jspecify.annotations.Nullable;

/** The lab's settings as Quarkus' configuration; MODEL.md names each with its default. */
public final class LabConfig implements ConfigSource {
  /**
   * The most that Quarkus' client can have: the root of the largest int. Quarkus gives the size to
   * Vert.x for HTTP/1.1 and for HTTP/2, and Vert.x' {@code SimpleConnectionPool} multiplies the two
   * as ints. Of 60,000 that is less than nothing, and a pool that is full from the start.
   */
  private static final int MOST_POOLED = 46_340;

  private final Map<String, String> properties =
      QuarkusHttp.isStarted() ? of(QuarkusHttp.current().context().settings()) : Map.of();

  @Override
  public Set<String> getPropertyNames() {
    return properties.keySet();
  }

  @Override
  public @Nullable String getValue(String propertyName) {
    return properties.get(propertyName);
  }

  @Override
  public String getName() {
    return "the lab's settings";
  }

  /** Above system properties and environment: the lab's settings are the only ones. */
  @Override
  public int getOrdinal() {
    return 1000;
  }

  private static Map<String, String> of(Settings settings) {
    Map<String, String> map = new HashMap<>();
    if (settings.shipped()) {
      // As Quarkus' guide has it; it goes on with NIO where there is none.
      map.put("quarkus.vertx.prefer-native-transport", "true");
    } else {
      map.put("quarkus.http.http2", "false");
      map.put(
          "quarkus.rest-client.downstream.connection-ttl",
          Long.toString(settings.downstreamKeepIdle().toMillis()));
    }
    // With the lab's defaults as in the other models, one per CPU unless set.
    int loops = settings.loops(settings.shipped() ? 0 : Runtime.getRuntime().availableProcessors());
    if (loops > 0) {
      map.put("quarkus.http.io-threads", Integer.toString(loops));
      map.put("quarkus.vertx.event-loops-pool-size", Integer.toString(loops));
    }
    map.put("quarkus.http.port", Integer.toString(settings.httpPort()));
    map.put("quarkus.http.accept-backlog", Integer.toString(settings.backlog()));
    map.put("quarkus.http.idle-timeout", settings.keepAliveTimeout().toString());
    map.put("quarkus.shutdown.timeout", LabServer.STOP_GRACE.toString());
    map.put("quarkus.rest-client.downstream.url", settings.downstreamUrl().toString());
    map.put("quarkus.rest-client.downstream.connection-pool-size", Integer.toString(MOST_POOLED));
    // Each call has a deadline of its own, which does not end an attempt to connect.
    map.put(
        "quarkus.rest-client.downstream.connect-timeout",
        Long.toString(settings.downstreamTimeout().toMillis()));
    map.put(
        "quarkus.rest-client.downstream.read-timeout",
        Integer.toString(Settings.DOWNSTREAM_TIMEOUT_MS.max()));
    return Map.copyOf(map);
  }
}
