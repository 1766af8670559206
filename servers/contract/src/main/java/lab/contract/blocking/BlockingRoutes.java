package lab.contract.blocking;

import lab.contract.Answer;
import lab.contract.ModelContext;
import lab.contract.RouteCall;

/** Does the routes' work on the calling thread, which may be of any kind. */
public final class BlockingRoutes implements AutoCloseable {
  private final String model;
  private final BlockingDownstream downstream;

  public BlockingRoutes(ModelContext context) {
    this.model = context.model();
    this.downstream = new BlockingDownstream(context);
  }

  /**
   * Returns the answer, however long it takes. Any number of threads at a time.
   *
   * @throws InterruptedException when the thread is told to stop; the request is then lost
   */
  public Answer answer(RouteCall call) throws InterruptedException {
    Answer refusal = call.refusal();
    if (refusal != null) {
      return refusal;
    }
    return switch (call.route()) {
      case ROOT -> hello(call.value("wait_ms"));
      case DOWNSTREAM -> downstream();
      case HEALTH -> Answer.up(model);
      case NONE -> throw new IllegalStateException("no route, but no refusal");
    };
  }

  @Override
  public void close() {
    downstream.close();
  }

  private Answer hello(int waitMs) throws InterruptedException {
    Thread.sleep(waitMs);
    return Answer.hello(model, Thread.currentThread().getName());
  }

  private Answer downstream() throws InterruptedException {
    try {
      return Answer.ok(downstream.call());
    } catch (DownstreamException e) {
      return Answer.downstreamFailed(e.outcome());
    }
  }
}
