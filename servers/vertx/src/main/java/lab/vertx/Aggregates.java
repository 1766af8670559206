package lab.vertx;

import io.vertx.core.Future;
import io.vertx.core.Vertx;
import java.util.stream.Stream;
import lab.contract.Answer;
import lab.contract.Bodies;
import lab.contract.BranchMetrics;
import lab.contract.LineFile.Reading;
import lab.contract.ModelContext;
import lab.contract.Route;
import lab.contract.RouteCall;

/** The routes that do several things at once, composed of futures on one loop. */
final class Aggregates {
  private final ModelContext lab;
  private final Vertx vertx;
  private final Waits waits;
  private final BranchMetrics branches;

  Aggregates(ModelContext lab, Vertx vertx, Waits waits) {
    this.lab = lab;
    this.vertx = vertx;
    this.waits = waits;
    branches = lab.branches();
  }

  /** A wait and a file at once; takes as long as the slower. */
  Future<Answer> aggregate(RouteCall call) {
    int waitMs = call.value("wait_ms");
    Future<Reading> reading = read(call);
    return Future.all(reading, pause(call.route(), waitMs))
        .map(_ -> Bodies.aggregate(waitMs, reading.result()));
  }

  /** The first of three branches that succeeds: one fails at once, the slower is cancelled. */
  Future<Answer> firstSuccess(RouteCall call) {
    Route route = call.route();
    Future<Boolean> broken =
        Future.<Boolean>failedFuture("broken on purpose").onFailure(_ -> branches.failed(route));
    Future<Boolean> fastWins = waits.race(call.value("fast_ms"), call.value("slow_ms"));
    return Future.any(broken, fastWins)
        .map(
            _ -> {
              branches.ok(route);
              branches.cancelled(route);
              return Bodies.firstSuccess(fastWins.result() ? "fast" : "slow", 1, 1);
            });
  }

  /** A file and a wait at once; a wait longer than its time is cancelled and stood in for. */
  Future<Answer> aggregateWithFallback(RouteCall call) {
    Route route = call.route();
    Future<Reading> reading = read(call);
    Future<Boolean> inTime =
        waits
            .race(call.value("wait_ms"), call.value("timeout_ms"))
            .onSuccess(
                ended -> {
                  if (ended) {
                    branches.ok(route);
                  } else {
                    branches.cancelled(route);
                  }
                });
    return Future.all(reading, inTime)
        .map(_ -> Bodies.aggregateWithFallback(inTime.result(), reading.result()));
  }

  /** Many waits at once; takes as long as one. */
  Future<Answer> multiAggregate(RouteCall call) {
    int count = call.value("branches");
    int waitMs = call.value("wait_ms");
    return Future.all(Stream.generate(() -> pause(call.route(), waitMs)).limit(count).toList())
        .map(_ -> Bodies.multiAggregate(count, (long) count * waitMs));
  }

  private Future<Void> pause(Route route, int waitMs) {
    return waits.after(waitMs).onSuccess(_ -> branches.ok(route));
  }

  private Future<Reading> read(RouteCall call) {
    int lines = call.value("lines");
    return vertx
        .executeBlocking(() -> lab.file().read(lines), false)
        .onSuccess(_ -> branches.ok(call.route()))
        .onFailure(_ -> branches.failed(call.route()));
  }
}
