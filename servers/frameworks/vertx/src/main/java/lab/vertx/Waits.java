package lab.vertx;

import io.vertx.core.Future;
import io.vertx.core.Vertx;
import lab.spec.BlockTheLoop;

/** The simulated waits: timers of the loop that asks for them. Loops' threads only. */
final class Waits {
  private final Vertx vertx;
  private final BlockTheLoop blockTheLoop;

  /**
   * @param blockTheLoop whether waits block the loop's thread, and how
   */
  Waits(Vertx vertx, BlockTheLoop blockTheLoop) {
    this.vertx = vertx;
    this.blockTheLoop = blockTheLoop;
  }

  /** Ends when so many milliseconds have passed. */
  Future<Void> after(int millis) {
    if (blockTheLoop.blocks()) {
      blockTheLoop.hold(millis);
      return Future.succeededFuture();
    }
    // A timer of Vert.x takes at least one millisecond.
    return millis == 0 ? Future.succeededFuture() : vertx.timer(millis);
  }
}
