package lab.quarkus;

import io.smallrye.mutiny.Uni;
import jakarta.inject.Singleton;
import java.io.IOException;
import java.time.Duration;
import lab.shell.ModelContext;
import lab.spec.Settings;
import org.eclipse.microprofile.rest.client.inject.RestClient;
import org.jboss.resteasy.reactive.RestResponse;

/** Asks the downstream; only a 200 is an answer. Any thread; does not block. */
@Singleton
public final class DownstreamAnswers {
  private final Downstream downstream;

  DownstreamAnswers(@RestClient Downstream downstream) {
    this.downstream = downstream;
  }

  /** This client is in force: as it ships, Quarkus decides how long it keeps idle ones. */
  public void publish(ModelContext context) {
    if (context.settings().shipped()) {
      context.knobs().hasNo(Settings.DOWNSTREAM_KEEP_IDLE_S.name());
    }
  }

  /** Asks when subscribed to, for so long at most; then it fails with Mutiny's TimeoutException. */
  public Uni<byte[]> get(Duration remaining) {
    return downstream
        .get()
        .onItem()
        .transformToUni(DownstreamAnswers::body)
        .ifNoItem()
        .after(wholeMillis(remaining))
        .fail();
  }

  private static Uni<byte[]> body(RestResponse<byte[]> response) {
    byte[] body = response.getEntity();
    if (response.getStatus() != 200 || body == null) {
      return Uni.createFrom().failure(new IOException("status " + response.getStatus()));
    }
    return Uni.createFrom().item(body);
  }

  /** Rounded up: the timers know nothing shorter, and refuse nothing at all. */
  private static Duration wholeMillis(Duration duration) {
    return Duration.ofMillis(duration.toMillis() + 1);
  }
}
