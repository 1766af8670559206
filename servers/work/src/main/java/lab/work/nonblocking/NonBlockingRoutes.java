package lab.work.nonblocking;

import java.util.function.Consumer;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.Bodies;
import lab.spec.DownstreamOutcome;
import lab.spec.RouteCall;

/**
 * Does the routes' work on an event loop: a wait becomes a timer, what would block a thread is
 * handed over. Only CPU work ({@code /compute}, {@code /metrics}) stays on the loop, and holds up
 * all its other requests meanwhile.
 *
 * <p>Belongs to one loop: every call and callback is on its thread, so nothing here is shared.
 */
public final class NonBlockingRoutes {
  /** The routes that do several things at once, in the lanes that have them. */
  public interface Demonstrations {
    /**
     * Begins with a request.
     *
     * @param services what it leaves there may throw: then its answer is a 500
     * @param to takes the answer; the first counts
     */
    void begin(RouteCall call, LoopServices services, Consumer<Answer> to);
  }

  private final ModelContext context;
  private final LoopServices loop;
  private final Demonstrations demonstrations;
  private final Answer up;

  /** Of a lane without demonstrations, which declares none of their routes. */
  public NonBlockingRoutes(ModelContext context, LoopServices loop) {
    this(
        context,
        loop,
        (call, services, to) -> {
          throw new IllegalStateException(call.route().path() + " is not served");
        });
  }

  public NonBlockingRoutes(ModelContext context, LoopServices loop, Demonstrations demonstrations) {
    this.context = context;
    this.loop = loop;
    this.demonstrations = demonstrations;
    this.up = Bodies.up(context.model());
  }

  /** Begins with a request, which gets one answer, on the loop, whatever throws. */
  public void begin(RouteCall call, Consumer<Answer> to) {
    Answer refusal = call.refusal();
    if (refusal != null) {
      to.accept(refusal);
      return;
    }
    Guard request = new Guard(loop, call, to);
    request.run(() -> work(call, request));
  }

  private void work(RouteCall call, Guard to) {
    switch (call.route()) {
      case ROOT -> hello(call.value("wait_ms"), to);
      // No callback waits, so none can wait inside synchronized.
      case DOWNSTREAM, SYNCHRONIZED -> downstream(to);
      case HEALTH -> to.accept(up);
      case COMPUTE -> to.accept(Bodies.compute(call.value("limit")));
      case BLOCK -> block(call.value("wait_ms"), to);
      case FILE -> file(call.value("lines"), to);
      case AGGREGATE, AGGREGATE_OLD, FIRST_SUCCESS, AGGREGATE_WITH_FALLBACK, MULTI_AGGREGATE ->
          demonstrations.begin(call, to, to);
      case METRICS -> to.accept(Bodies.metrics(context.exposition().get()));
      case NONE -> throw new IllegalStateException("no route, but no refusal");
    }
  }

  private void hello(int waitMs, Guard to) {
    var unused =
        to.after(
            waitMs,
            () -> to.accept(Bodies.hello(context.model(), Thread.currentThread().getName())));
  }

  private static void downstream(Guard to) {
    to.callDownstream(
        (outcome, body) ->
            to.accept(
                outcome == DownstreamOutcome.OK
                    ? Answer.ok(body)
                    : Answer.downstreamFailed(outcome)));
  }

  private static void block(int waitMs, Guard to) {
    var unused = to.after(waitMs, () -> to.accept(Bodies.block(waitMs)));
  }

  private void file(int lines, Guard to) {
    to.handOver(
        () -> context.file().read(lines),
        (reading, failure) ->
            to.accept(reading == null ? Answer.INTERNAL_ERROR : Bodies.file(reading)));
  }
}
