package lab.work;

import java.time.Duration;
import lab.shell.Knobs;
import lab.shell.ModelContext;
import lab.spec.Settings;

/** The limits on downstream calls: how many at a time, and how long each may take. Any thread. */
public final class DownstreamLimits {
  private final ConnectionCap cap;
  private final Duration keepIdle;
  private volatile int timeoutMs;

  private DownstreamLimits(Settings settings) {
    cap = new ConnectionCap(settings.downstreamConnections());
    keepIdle = settings.downstreamKeepIdle();
    timeoutMs = (int) settings.downstreamTimeout().toMillis();
  }

  /** Makes a model's limits, an MXBean and two knobs, from its settings. Called once per server. */
  public static DownstreamLimits publish(ModelContext context) {
    DownstreamLimits limits = new DownstreamLimits(context.settings());
    ConnectionCap cap = limits.cap;
    context.mbeans().register("DownstreamConnections", cap);
    Knobs knobs = context.knobs();
    knobs.add(Settings.DOWNSTREAM_CONNECTIONS, cap::getCap, cap::resize);
    knobs.add(
        Settings.DOWNSTREAM_TIMEOUT_MS, () -> limits.timeoutMs, next -> limits.timeoutMs = next);
    return limits;
  }

  public ConnectionCap cap() {
    return cap;
  }

  /** Idle connections are closed after this long, or at the next look at them. */
  public Duration keepIdle() {
    return keepIdle;
  }

  /** How long it is from one look at the idle connections to the next: a twelfth of that time. */
  public static Duration betweenLooks(Duration keepIdle) {
    return keepIdle.dividedBy(12);
  }

  /** How long a call that begins now may take, with its wait for a place, in nanoseconds. */
  public long timeoutNanos() {
    return timeoutMs * 1_000_000L;
  }
}
