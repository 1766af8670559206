package lab.eventloop;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.OptionalInt;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import lab.observe.LoopMetrics;
import lab.reactor.Exchange;
import lab.reactor.Reactor;
import lab.reactor.ReactorGroup;
import lab.reactor.Timers;
import lab.shell.ModelContext;
import lab.work.DownstreamAddress;
import lab.work.DownstreamLimits;
import lab.work.nonblocking.LoopServices;
import lab.work.nonblocking.NonBlockingRoutes;

/**
 * A reactor that works on its requests itself: one thread does everything for its connections.
 *
 * <p>Requests wait in a queue of the loop's own, and not unread in their sockets, so that their
 * wait can be measured and bounded: after at most {@link #SLICE_NANOS} of work, or as long as the
 * turn took before it, or one request that takes longer, the loop looks again who has come.
 */
final class Loop extends Reactor implements LoopServices, LoopMetrics.Observed {
  /** How long the loop at least works off its queue before it looks for new input. */
  private static final long SLICE_NANOS = 1_000_000;

  private final NonBlockingRoutes routes;
  final SelectorPool downstream;
  private final ArrayDeque<Exchange> queue = new ArrayDeque<>();
  private final AtomicInteger depth = new AtomicInteger();

  /** The helpers run what may block. */
  Loop(
      String name,
      ReactorGroup group,
      ModelContext context,
      DownstreamLimits limits,
      DownstreamAddress address,
      Executor helpers)
      throws IOException {
    super(name, group);
    downstream = new SelectorPool(this, context, limits, address);
    routes =
        new NonBlockingRoutes(
            context, this, helpers, downstream::call, NonBlockingRoutes.Demonstrations.NONE);
  }

  @Override
  protected void handle(Exchange exchange) {
    queue.add(exchange);
    depth.setOpaque(queue.size());
  }

  @Override
  protected boolean hasWork() {
    return !queue.isEmpty();
  }

  @Override
  protected void work() {
    // As long as the turn took up to here: or else requests wait while many clients are read, and
    // their calls of the downstream begin late.
    long now = System.nanoTime();
    long end = now + Math.max(SLICE_NANOS, now - probe().selectedNanos());
    while (now - end < 0 && !queue.isEmpty()) {
      Exchange next = queue.remove();
      depth.setOpaque(queue.size());
      next.begin();
      if (next.isGone()) {
        next.abort();
      } else {
        routes.begin(next.call(), next::answer);
      }
      now = System.nanoTime();
    }
  }

  @Override
  protected void sweep(long nowNanos) {
    downstream.closeIdle(nowNanos);
  }

  @Override
  public long busyNanos() {
    return probe().busyNanos();
  }

  @Override
  public OptionalInt queueDepth() {
    return OptionalInt.of(depth.get());
  }

  @Override
  public Pending after(long nanos, Runnable then) {
    Timers.Timer timer = timers().timer(then);
    timers().set(timer, System.nanoTime() + nanos);
    return timer;
  }

  @Override
  public long readyNanos(long earliestNanos) {
    return probe().readyNanos(earliestNanos);
  }
}
