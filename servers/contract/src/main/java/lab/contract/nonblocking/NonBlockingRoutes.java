package lab.contract.nonblocking;

import java.util.function.Consumer;
import lab.contract.Answer;
import lab.contract.Bodies;
import lab.contract.DownstreamOutcome;
import lab.contract.ModelContext;
import lab.contract.Primes;
import lab.contract.RouteCall;

/**
 * Does the routes' work on an event loop: a wait becomes a timer, what would block a thread is
 * handed over, branches in parallel are callbacks that know of each other. Only CPU work ({@code
 * /compute}, {@code /metrics}) stays on the loop, and holds up all its other requests meanwhile.
 *
 * <p>Belongs to one loop: every call and callback is on its thread, so nothing here is shared.
 */
public final class NonBlockingRoutes {
  private final ModelContext context;
  private final LoopServices loop;
  private final Aggregates aggregates;
  private final Answer up;

  public NonBlockingRoutes(ModelContext context, LoopServices loop) {
    this.context = context;
    this.loop = loop;
    this.aggregates = new Aggregates(context);
    this.up = Bodies.up(context.model());
  }

  /**
   * Begins with a request. Whatever of its work throws, now or later, it is answered.
   *
   * @param to takes the answer, once, on the loop's thread, perhaps before this has returned
   */
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
      case COMPUTE -> compute(call.value("limit"), to);
      case BLOCK -> block(call.value("wait_ms"), to);
      case FILE -> file(call.value("lines"), to);
      // The same here: on an event loop parallel work is callbacks, the old way or not.
      case AGGREGATE, AGGREGATE_OLD ->
          aggregates.aggregate(call.route(), call.value("wait_ms"), call.value("lines"), to);
      case FIRST_SUCCESS ->
          aggregates.firstSuccess(call.value("fast_ms"), call.value("slow_ms"), to);
      case AGGREGATE_WITH_FALLBACK ->
          aggregates.aggregateWithFallback(
              call.value("wait_ms"), call.value("timeout_ms"), call.value("lines"), to);
      case MULTI_AGGREGATE ->
          aggregates.multiAggregate(call.value("branches"), call.value("wait_ms"), to);
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

  private static void compute(int limit, Guard to) {
    to.accept(Bodies.compute(limit, Primes.sumUpTo(limit)));
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
