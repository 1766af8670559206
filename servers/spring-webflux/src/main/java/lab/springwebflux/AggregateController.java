package lab.springwebflux;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import lab.contract.Bodies;
import lab.contract.BranchMetrics;
import lab.contract.LineFile.Reading;
import lab.contract.ModelContext;
import lab.contract.Route;
import lab.contract.RouteCall;
import lab.spring.Answers;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestAttribute;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.SignalType;

/** The routes that do several things at once, by Reactor's operators. */
@RestController
final class AggregateController {
  /** The branch of {@code /first-success} that never succeeds. */
  private static final class BrokenBranchException extends Exception {
    private static final long serialVersionUID = 1;

    BrokenBranchException() {
      super("broken on purpose", null, false, false);
    }
  }

  /** A wait that may win or lose: counted once, also as a loser that never began. */
  private final class Contender {
    private enum State {
      RUNNING,
      OK,
      CANCELLED
    }

    private final Route route;
    private final AtomicReference<State> state = new AtomicReference<>(State.RUNNING);

    Contender(Route route) {
      this.route = route;
    }

    Mono<String> pause(int waitMs, String name) {
      return work.pause(waitMs)
          .doOnSuccess(
              _ -> {
                if (state.compareAndSet(State.RUNNING, State.OK)) {
                  branches.ok(route);
                }
              })
          .doOnCancel(this::cancelled)
          .thenReturn(name);
    }

    void cancelled() {
      if (state.compareAndSet(State.RUNNING, State.CANCELLED)) {
        branches.cancelled(route);
      }
    }

    boolean wasCancelled() {
      return state.get() == State.CANCELLED;
    }
  }

  private final Work work;
  private final BranchMetrics branches;

  AggregateController(ModelContext context, Work work) {
    this.work = work;
    branches = context.branches();
  }

  /** A wait and a file at once; takes as long as the slower. */
  @GetMapping("/aggregate")
  Mono<ResponseEntity<byte[]>> aggregate(@RequestAttribute(ContractFilter.CALL) RouteCall call) {
    return Mono.zip(pause(call, "wait_ms"), read(call), Bodies::aggregate).map(Answers::entity);
  }

  /** The same here: Reactor's operators are the old way and the new. */
  @GetMapping("/aggregate-old")
  Mono<ResponseEntity<byte[]>> aggregateOld(@RequestAttribute(ContractFilter.CALL) RouteCall call) {
    return aggregate(call);
  }

  /** The first of three branches that succeeds: one fails at once, the slower is cancelled. */
  @GetMapping("/first-success")
  Mono<ResponseEntity<byte[]>> firstSuccess(@RequestAttribute(ContractFilter.CALL) RouteCall call) {
    AtomicInteger failed = new AtomicInteger();
    Contender fast = new Contender(call.route());
    Contender slow = new Contender(call.route());
    Mono<String> broken =
        watched(call.route(), Mono.<String>error(BrokenBranchException::new))
            .doOnError(e -> failed.incrementAndGet());
    return Mono.firstWithValue(
            broken,
            fast.pause(call.value("fast_ms"), "fast"),
            slow.pause(call.value("slow_ms"), "slow"))
        .map(
            winner -> {
              // Reactor does not even subscribe to a branch when another has won before.
              Contender loser = winner.equals("fast") ? slow : fast;
              loser.cancelled();
              return Bodies.firstSuccess(winner, failed.get(), loser.wasCancelled() ? 1 : 0);
            })
        .map(Answers::entity);
  }

  /** A file and a wait at once; a wait longer than its time is cancelled and stood in for. */
  @GetMapping("/aggregate-with-fallback")
  Mono<ResponseEntity<byte[]>> aggregateWithFallback(
      @RequestAttribute(ContractFilter.CALL) RouteCall call) {
    Mono<Boolean> inTime =
        pause(call, "wait_ms")
            .thenReturn(true)
            .timeout(Duration.ofMillis(call.value("timeout_ms")), Mono.just(false));
    return Mono.zip(inTime, read(call), Bodies::aggregateWithFallback).map(Answers::entity);
  }

  /** Many waits at once; takes as long as one. */
  @GetMapping("/multi-aggregate")
  Mono<ResponseEntity<byte[]>> multiAggregate(
      @RequestAttribute(ContractFilter.CALL) RouteCall call) {
    int count = call.value("branches");
    return Flux.range(0, count)
        .flatMap(i -> pause(call, "wait_ms"))
        .reduce(0L, Long::sum)
        .map(waited -> Bodies.multiAggregate(count, waited))
        .map(Answers::entity);
  }

  private Mono<Integer> pause(RouteCall call, String parameter) {
    return watched(call.route(), work.pause(call.value(parameter)));
  }

  private Mono<Reading> read(RouteCall call) {
    return watched(call.route(), work.read(call.value("lines")));
  }

  private <T> Mono<T> watched(Route route, Mono<T> branch) {
    return branch
        .doOnSuccess(result -> branches.ok(route))
        .doOnError(e -> branches.failed(route))
        // Once, and not after its end: a cancellation also comes when the request is over.
        .doFinally(
            end -> {
              if (end == SignalType.CANCEL) {
                branches.cancelled(route);
              }
            });
  }
}
