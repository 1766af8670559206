package lab.springwebflux;

import java.time.Duration;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.BlockTheLoop;
import lab.spec.Bodies;
import lab.spec.RouteCall;
import lab.spring.SpringServer;
import lab.work.nonblocking.DownstreamCalls;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestAttribute;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** The routes. Those that only compute do it on the request's loop. */
@RestController
final class RouteController {
  private final ModelContext context;
  private final DownstreamCalls downstream;
  private final BlockTheLoop blockTheLoop;
  private final Answer up;

  RouteController(ModelContext context, DownstreamCalls downstream) {
    this.context = context;
    this.downstream = downstream;
    this.blockTheLoop = context.settings().blockTheLoop();
    this.up = Bodies.up(context.model());
  }

  @GetMapping({
    "/",
    "/downstream",
    "/synchronized",
    "/health",
    "/compute",
    "/block",
    "/file",
    "/metrics"
  })
  Mono<ResponseEntity<byte[]>> answer(@RequestAttribute(ContractFilter.CALL) RouteCall call) {
    return work(call).map(SpringServer::entity);
  }

  private Mono<Answer> work(RouteCall call) {
    return switch (call.route()) {
      case ROOT ->
          pause(call).map(_ -> Bodies.hello(context.model(), Thread.currentThread().getName()));
      // Not broken off when the client is gone: the call ends by its own deadline.
      case DOWNSTREAM, SYNCHRONIZED -> Mono.fromFuture(downstream::call, true);
      case HEALTH -> Mono.just(up);
      case COMPUTE -> Mono.fromSupplier(() -> Bodies.compute(call.value("limit")));
      case BLOCK -> pause(call).map(Bodies::block);
      case FILE -> file(call.value("lines"));
      case METRICS -> Mono.fromSupplier(() -> Bodies.metrics(context.exposition().get()));
      default -> throw new IllegalStateException(call.route() + " is not served");
    };
  }

  /** Waits as long as asked on a timer of Reactor's, or blocks the loop as the settings say. */
  private Mono<Integer> pause(RouteCall call) {
    int millis = call.value("wait_ms");
    if (blockTheLoop.blocks()) {
      return Mono.fromCallable(
          () -> {
            blockTheLoop.hold(millis);
            return millis;
          });
    }
    return Mono.delay(Duration.ofMillis(millis)).thenReturn(millis);
  }

  /** Read on one of the threads that Reactor has for what blocks. */
  private Mono<Answer> file(int lines) {
    return Mono.fromCallable(() -> context.file().read(lines))
        .subscribeOn(Schedulers.boundedElastic())
        .map(Bodies::file);
  }
}
