package lab.eventloop;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.OptionalInt;
import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.function.BiConsumer;
import lab.observe.LoopMetrics;
import lab.reactor.Exchange;
import lab.reactor.Reactor;
import lab.reactor.ReactorGroup;
import lab.reactor.Timers;
import lab.shell.ModelContext;
import lab.spec.BlockTheLoop;
import lab.work.DownstreamAddress;
import lab.work.DownstreamLimits;
import lab.work.nonblocking.LoopServices;
import lab.work.nonblocking.NonBlockingRoutes;
import org.jspecify.annotations.Nullable;

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

  private final BlockTheLoop blockTheLoop;
  private final Executor helpers;
  private final NonBlockingRoutes routes;
  private final DownstreamPool downstream;
  private final ArrayDeque<Exchange> queue = new ArrayDeque<>();

  /** The helpers run what may block. */
  Loop(
      String name,
      ReactorGroup group,
      ModelContext context,
      DownstreamLimits limits,
      DownstreamAddress address,
      byte[] downstreamRequest,
      Executor helpers)
      throws IOException {
    super(name, group);
    this.blockTheLoop = context.settings().blockTheLoop();
    this.helpers = helpers;
    this.routes = new NonBlockingRoutes(context, this);
    this.downstream =
        new DownstreamPool(this, limits, address, downstreamRequest, context.downstream());
  }

  // --- Reactor ---------------------------------------------------------------------------------

  @Override
  protected void handle(Exchange exchange) {
    queue.add(exchange);
    probe().setDepth(queue.size());
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
      probe().setDepth(queue.size());
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

  // --- LoopMetrics.Observed, any thread --------------------------------------------------------

  @Override
  public long busyNanos() {
    return probe().busyNanos();
  }

  @Override
  public OptionalInt queueDepth() {
    return OptionalInt.of(probe().depth());
  }

  // --- LoopServices ----------------------------------------------------------------------------

  @Override
  public Pending after(long millis, Runnable then) {
    if (blockTheLoop.blocks()) {
      blockTheLoop.hold(millis);
      then.run();
      return () -> {};
    }
    Wait wait = new Wait(then);
    timers().set(wait, System.nanoTime() + millis * 1_000_000);
    return wait;
  }

  @Override
  public <T> void handOver(Callable<T> work, BiConsumer<@Nullable T, @Nullable Throwable> then) {
    helpers.execute(
        () -> {
          T result;
          try {
            result = work.call();
          } catch (Throwable e) {
            execute(() -> then.accept(null, e));
            return;
          }
          execute(() -> then.accept(result, null));
        });
  }

  @Override
  public void callDownstream(DownstreamCallback callback) {
    downstream.call(callback);
  }

  private final class Wait extends Timers.Timer implements Pending {
    private final Runnable then;

    Wait(Runnable then) {
      this.then = then;
    }

    @Override
    protected void due() {
      then.run();
    }

    @Override
    public void cancel() {
      timers().cancel(this);
    }
  }
}
