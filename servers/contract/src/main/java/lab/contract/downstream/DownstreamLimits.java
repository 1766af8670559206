package lab.contract.downstream;

import java.time.Duration;
import lab.contract.ModelContext;
import lab.contract.Settings;

/** The limits on downstream calls: how many at a time, and how long each may take. Any thread. */
public final class DownstreamLimits {
  /** Idle connections are closed after this long; the downstream keeps them longer. */
  public static final Duration KEEP_IDLE = Duration.ofSeconds(60);

  private final ConnectionCap cap;
  private volatile int timeoutMs;

  private DownstreamLimits(Settings settings) {
    cap = new ConnectionCap(settings.downstreamConnections());
    timeoutMs = (int) settings.downstreamTimeout().toMillis();
  }

  /**
   * Makes a model's limits from its settings. The cap is seen as MXBean {@code
   * DownstreamConnections}; the cap and the timeout are knobs. Called once per server.
   */
  public static DownstreamLimits publish(ModelContext context) {
    DownstreamLimits limits = new DownstreamLimits(context.settings());
    ConnectionCap cap = limits.cap;
    context.mbeans().register("DownstreamConnections", cap);
    context.knobs().add(Settings.DOWNSTREAM_CONNECTIONS, cap::getCap, cap::resize);
    context
        .knobs()
        .add(
            Settings.DOWNSTREAM_TIMEOUT_MS,
            () -> limits.timeoutMs,
            next -> limits.timeoutMs = next);
    return limits;
  }

  public ConnectionCap cap() {
    return cap;
  }

  /** How long a call that begins now may take, with its wait for a place, in nanoseconds. */
  public long timeoutNanos() {
    return timeoutMs * 1_000_000L;
  }
}
