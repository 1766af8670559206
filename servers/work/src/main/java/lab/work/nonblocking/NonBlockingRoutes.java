package lab.work.nonblocking;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.BlockTheLoop;
import lab.spec.Bodies;
import lab.spec.RouteCall;
import lab.work.nonblocking.LoopServices.Pending;
import org.jspecify.annotations.Nullable;

/**
 * Does the routes' work on an event loop: a wait becomes a timer, what would block a thread is
 * handed over. Only CPU work ({@code /compute}, {@code /metrics}) stays on the loop, and holds up
 * all its other requests meanwhile. One loop's: every call and callback is on its thread.
 */
public final class NonBlockingRoutes {
  /** The routes that do several things at once, in the lanes that have them. */
  public interface Demonstrations {
    /** Of a lane without them, which declares none of their routes. */
    Demonstrations NONE =
        (call, request) -> {
          throw new IllegalStateException(call.route().path() + " is not served");
        };

    /** Begins with a request, which takes the answer; the first counts. */
    void begin(RouteCall call, Request request);
  }

  private static final Logger LOG = System.getLogger(NonBlockingRoutes.class.getName());

  private final ModelContext context;
  private final LoopServices loop;
  private final Executor helpers;
  private final Consumer<Consumer<Answer>> downstream;
  private final Demonstrations demonstrations;
  private final BlockTheLoop blockTheLoop;
  private final Answer up;

  /** Of one loop. Helpers run what may block; the downstream answers on the loop. */
  public NonBlockingRoutes(
      ModelContext context,
      LoopServices loop,
      Executor helpers,
      Consumer<Consumer<Answer>> downstream,
      Demonstrations demonstrations) {
    this.context = context;
    this.loop = loop;
    this.helpers = helpers;
    this.downstream = downstream;
    this.demonstrations = demonstrations;
    this.blockTheLoop = context.settings().blockTheLoop();
    this.up = Bodies.up(context.model());
  }

  /** Begins with a request, which gets one answer, on the loop, whatever throws. */
  public void begin(RouteCall call, Consumer<Answer> to) {
    Answer refusal = call.refusal();
    if (refusal != null) {
      to.accept(refusal);
      return;
    }
    Request request = new Request(call, to);
    request.run(() -> work(call, request));
  }

  private void work(RouteCall call, Request to) {
    switch (call.route()) {
      case ROOT ->
          to.after(
              call.value("wait_ms"),
              () -> to.accept(Bodies.hello(context.model(), Thread.currentThread().getName())));
      // No callback waits, so none can wait inside synchronized.
      case DOWNSTREAM, SYNCHRONIZED -> downstream.accept(answer -> to.run(() -> to.accept(answer)));
      case HEALTH -> to.accept(up);
      case COMPUTE -> to.accept(Bodies.compute(call.value("limit")));
      case BLOCK -> {
        int waitMs = call.value("wait_ms");
        to.after(waitMs, () -> to.accept(Bodies.block(waitMs)));
      }
      case FILE -> {
        int lines = call.value("lines");
        to.handOver(
            () -> context.file().read(lines),
            (reading, failure) ->
                to.accept(reading == null ? Answer.INTERNAL_ERROR : Bodies.file(reading)));
      }
      case AGGREGATE, AGGREGATE_OLD, FIRST_SUCCESS, AGGREGATE_WITH_FALLBACK, MULTI_AGGREGATE ->
          demonstrations.begin(call, to);
      case METRICS -> to.accept(Bodies.metrics(context.exposition().get()));
      case NONE -> throw new IllegalStateException("no route, but no refusal");
    }
  }

  /**
   * One request on its loop. What it leaves there to be done later may throw: that is a 500, too,
   * or nobody would answer it, or the loop would end.
   */
  public final class Request implements Consumer<Answer> {
    private final RouteCall call;
    private final Consumer<Answer> to;
    private boolean answered;

    Request(RouteCall call, Consumer<Answer> to) {
      this.call = call;
      this.to = to;
    }

    /** Answers it. Only the first answer is taken. */
    @Override
    public void accept(Answer answer) {
      if (!answered) {
        answered = true;
        to.accept(answer);
      }
    }

    private void run(Runnable part) {
      try {
        part.run();
      } catch (RuntimeException | Error e) {
        LOG.log(Level.ERROR, "a bug: " + call.route().path() + " failed", e);
        accept(Answer.INTERNAL_ERROR);
      }
    }

    /** Runs this when so many milliseconds have passed; at once if waits block the loop. */
    public Pending after(long millis, Runnable then) {
      if (blockTheLoop.blocks()) {
        blockTheLoop.hold(millis);
        run(then);
        return () -> {};
      }
      return loop.after(millis * 1_000_000, () -> run(then));
    }

    /** Works on a helper thread, then hands over the result and null, or null and the failure. */
    public <T> void handOver(Callable<T> work, BiConsumer<@Nullable T, @Nullable Throwable> then) {
      helpers.execute(
          () -> {
            T result;
            try {
              result = work.call();
            } catch (Throwable e) {
              LOG.log(Level.ERROR, call.route().path() + ": work that was handed over failed", e);
              loop.execute(() -> run(() -> then.accept(null, e)));
              return;
            }
            loop.execute(() -> run(() -> then.accept(result, null)));
          });
    }
  }
}
