package lab.contract;

import java.util.function.IntConsumer;

/** The deadline of a downstream call, live. Any thread. */
public final class DownstreamTimeout {
  private volatile int ms;

  private DownstreamTimeout(int ms) {
    this.ms = ms;
  }

  /**
   * Shows a model's cap on downstream calls as MXBean {@code DownstreamConnections}, and it and the
   * deadline as knobs. Called once.
   *
   * @param resize changes the cap; called from management threads
   */
  public static DownstreamTimeout publish(
      ModelContext context, DownstreamConnectionsMXBean cap, IntConsumer resize) {
    DownstreamTimeout timeout =
        new DownstreamTimeout((int) context.settings().downstreamTimeout().toMillis());
    context.mbeans().register("DownstreamConnections", cap);
    context.knobs().add(Settings.DOWNSTREAM_CONNECTIONS, cap::getCap, resize);
    context.knobs().add(Settings.DOWNSTREAM_TIMEOUT_MS, timeout::ms, next -> timeout.ms = next);
    return timeout;
  }

  /** Of a call that begins now, in milliseconds. */
  public int ms() {
    return ms;
  }
}
