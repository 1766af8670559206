package lab.netty;

import static java.util.Objects.requireNonNull;

import io.netty.channel.IoHandle;
import io.netty.channel.IoHandler;
import io.netty.channel.IoHandlerContext;
import io.netty.channel.IoRegistration;
import java.util.function.LongSupplier;
import lab.observe.SelectorClock;
import org.jspecify.annotations.Nullable;

/**
 * Netty's I/O handler of one event loop, with a clock at its selector. It tells two things Netty
 * does not: how long the loop was at work rather than waiting in the selector, and since when the
 * requests it is about to begin have been there.
 *
 * <pre>
 *   run --&gt; select --asks whether to time what follows--&gt; read, write --&gt; tasks, timers --&gt; run
 *          (waiting)                                      '------------ at work -------------'
 * </pre>
 */
final class LoopIo implements IoHandler {
  private final IoHandler nio;
  private final LongSupplier nanoTime;
  private final AroundSelect around = new AroundSelect();
  private final SelectorClock clock;

  /** Work of the rounds that have ended. Written by the loop alone, as the next one. */
  private volatile long busyNanos;

  /** Since when the loop is at work; 0 while it waits. */
  private volatile long workingSinceNanos;

  private long reportedNanos;

  /**
   * @param nanoTime {@link System#nanoTime}
   */
  LoopIo(IoHandler nio, LongSupplier nanoTime) {
    this.nio = nio;
    this.nanoTime = nanoTime;
    clock = new SelectorClock(nanoTime.getAsLong());
  }

  /** Time at work so far, the round under way included; never less than it was. Any thread. */
  synchronized long busyNanos() {
    // In this order, and run() writes in the other: a round that ends in between is missed until
    // the next call, never doubled.
    long ended = busyNanos;
    long since = workingSinceNanos;
    long busy = since == 0 ? ended : ended + nanoTime.getAsLong() - since;
    reportedNanos = Math.max(reportedNanos, busy);
    return reportedNanos;
  }

  /** Of its selector. The loop only. */
  SelectorClock clock() {
    return clock;
  }

  @Override
  public int run(IoHandlerContext context) {
    long asked = nanoTime.getAsLong();
    clock.asked(asked);
    long since = workingSinceNanos;
    if (since != 0) {
      workingSinceNanos = 0;
      busyNanos = busyNanos + asked - since;
    }
    around.context = context;
    // Where it may not wait, asking is work.
    around.workSinceNanos = context.canBlock() ? 0 : asked;
    int handled = nio.run(around);
    if (workingSinceNanos == 0) {
      around.selected();
    }
    clock.took(handled);
    return handled;
  }

  @Override
  public void initialize() {
    nio.initialize();
  }

  @Override
  public void prepareToDestroy() {
    nio.prepareToDestroy();
  }

  @Override
  public void destroy() {
    nio.destroy();
  }

  @Override
  public IoRegistration register(IoHandle handle) throws Exception {
    return nio.register(handle);
  }

  @Override
  public void wakeup() {
    nio.wakeup();
  }

  @Override
  public boolean isCompatible(Class<? extends IoHandle> handleType) {
    return nio.isCompatible(handleType);
  }

  /** Netty's handler asks it, after select and before the first ready connection, what to time. */
  private final class AroundSelect implements IoHandlerContext {
    private @Nullable IoHandlerContext context;

    /** Since when the loop is at work, whenever the selector returns; 0: as it does. */
    private long workSinceNanos;

    void selected() {
      long now = nanoTime.getAsLong();
      clock.selected(now);
      workingSinceNanos = workSinceNanos == 0 ? now : workSinceNanos;
    }

    @Override
    public boolean shouldReportActiveIoTime() {
      selected();
      return requireNonNull(context).shouldReportActiveIoTime();
    }

    @Override
    public boolean canBlock() {
      return requireNonNull(context).canBlock();
    }

    @Override
    public long delayNanos(long currentTimeNanos) {
      return requireNonNull(context).delayNanos(currentTimeNanos);
    }

    @Override
    public long deadlineNanos() {
      return requireNonNull(context).deadlineNanos();
    }

    @Override
    public void reportActiveIoTime(long activeNanos) {
      requireNonNull(context).reportActiveIoTime(activeNanos);
    }
  }
}
