package lab.quarkusreactive;

import io.smallrye.mutiny.Uni;
import java.util.Collections;
import lab.contract.Answer;
import lab.contract.Bodies;
import lab.contract.BranchMetrics;
import lab.contract.LineFile.Reading;
import lab.contract.Route;
import lab.contract.RouteCall;

/** The routes that do several things at once, by Mutiny's combinators. */
final class Aggregates {
  /** The branch of {@code /first-success} that never succeeds. */
  private static final class BrokenBranchException extends Exception {
    private static final long serialVersionUID = 1;

    BrokenBranchException() {
      super("broken on purpose", null, false, false);
    }
  }

  private final BranchMetrics branches;
  private final Work work;

  Aggregates(BranchMetrics branches, Work work) {
    this.branches = branches;
    this.work = work;
  }

  /** A wait and a file at once; takes as long as the slower. */
  Uni<Answer> aggregate(RouteCall call) {
    return Uni.combine()
        .all()
        .unis(waitOf(call), fileOf(call))
        .with((Integer waited, Reading reading) -> Bodies.aggregate(waited, reading));
  }

  /** The first of three branches that succeeds: one fails at once, the slower is cancelled. */
  Uni<Answer> firstSuccess(RouteCall call) {
    Uni<String> fast = counted(call.route(), work.wait(call.value("fast_ms"))).replaceWith("fast");
    Uni<String> slow = counted(call.route(), work.wait(call.value("slow_ms"))).replaceWith("slow");
    Uni<String> broken =
        counted(call.route(), Uni.createFrom().failure(new BrokenBranchException()));
    return Uni.join()
        .first(broken, fast, slow)
        .withItem()
        .map(winner -> Bodies.firstSuccess(winner, 1, 1));
  }

  /** A file and a wait at once; a wait longer than its time is cancelled and stood in for. */
  Uni<Answer> aggregateWithFallback(RouteCall call) {
    Uni<Boolean> inTime = waitOf(call).replaceWith(true);
    Uni<Boolean> tooLate = work.wait(call.value("timeout_ms")).replaceWith(false);
    return Uni.combine()
        .all()
        .unis(Uni.join().first(inTime, tooLate).toTerminate(), fileOf(call))
        .with((Boolean ended, Reading reading) -> Bodies.aggregateWithFallback(ended, reading));
  }

  /** Many waits at once; takes as long as one. */
  Uni<Answer> multiAggregate(RouteCall call) {
    int count = call.value("branches");
    return Uni.join()
        .all(Collections.nCopies(count, waitOf(call)))
        .andFailFast()
        .map(
            waits ->
                Bodies.multiAggregate(count, waits.stream().mapToLong(Integer::longValue).sum()));
  }

  private Uni<Integer> waitOf(RouteCall call) {
    return counted(call.route(), work.wait(call.value("wait_ms")));
  }

  private Uni<Reading> fileOf(RouteCall call) {
    return counted(call.route(), work.file(call.value("lines")));
  }

  private <T> Uni<T> counted(Route route, Uni<T> branch) {
    return branch
        .onItem()
        .invoke(() -> branches.ok(route))
        .onFailure()
        .invoke(() -> branches.failed(route))
        .onCancellation()
        .invoke(() -> branches.cancelled(route));
  }
}
