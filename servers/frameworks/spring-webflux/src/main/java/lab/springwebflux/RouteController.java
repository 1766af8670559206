package lab.springwebflux;

import lab.shell.ModelContext;
import lab.spec.Bodies;
import lab.spec.Primes;
import lab.spec.RouteCall;
import lab.spring.Answers;
import lab.work.nonblocking.DownstreamCalls;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestAttribute;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Mono;

/** The routes. Those that only compute do it on the request's loop. */
@RestController
final class RouteController {
  private final ModelContext context;
  private final DownstreamCalls downstream;
  private final Work work;
  private final ResponseEntity<byte[]> up;

  RouteController(ModelContext context, DownstreamCalls downstream, Work work) {
    this.context = context;
    this.downstream = downstream;
    this.work = work;
    up = Answers.entity(Bodies.up(context.model()));
  }

  @GetMapping("/")
  Mono<ResponseEntity<byte[]>> hello(@RequestAttribute(ContractFilter.CALL) RouteCall call) {
    return work.pause(call.value("wait_ms"))
        .map(waited -> Bodies.hello(context.model(), Thread.currentThread().getName()))
        .map(Answers::entity);
  }

  @GetMapping({"/downstream", "/synchronized"})
  Mono<ResponseEntity<byte[]>> downstream() {
    // Not broken off when the client is gone: the call ends by its own deadline.
    return Mono.fromFuture(downstream::call, true).map(Answers::entity);
  }

  @GetMapping("/health")
  Mono<ResponseEntity<byte[]>> health() {
    return Mono.just(up);
  }

  @GetMapping("/compute")
  Mono<ResponseEntity<byte[]>> compute(@RequestAttribute(ContractFilter.CALL) RouteCall call) {
    int limit = call.value("limit");
    return Mono.fromSupplier(() -> Bodies.compute(limit, Primes.sumUpTo(limit)))
        .map(Answers::entity);
  }

  @GetMapping("/block")
  Mono<ResponseEntity<byte[]>> block(@RequestAttribute(ContractFilter.CALL) RouteCall call) {
    return work.pause(call.value("wait_ms")).map(Bodies::block).map(Answers::entity);
  }

  @GetMapping("/file")
  Mono<ResponseEntity<byte[]>> file(@RequestAttribute(ContractFilter.CALL) RouteCall call) {
    return work.read(call.value("lines")).map(Bodies::file).map(Answers::entity);
  }

  @GetMapping("/metrics")
  Mono<ResponseEntity<byte[]>> metrics() {
    return Mono.fromSupplier(() -> Bodies.metrics(context.exposition().get())).map(Answers::entity);
  }
}
