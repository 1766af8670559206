package lab.springmvc;

import lab.spec.RouteCall;
import lab.spring.Answers;
import lab.work.blocking.BlockingRoutes;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestAttribute;
import org.springframework.web.bind.annotation.RestController;

/** The routes. Every handler blocks the request's thread until its answer is known. */
@RestController
final class RouteController {
  private final BlockingRoutes routes;

  RouteController(BlockingRoutes routes) {
    this.routes = routes;
  }

  @GetMapping("/")
  ResponseEntity<byte[]> hello(@RequestAttribute(ContractFilter.CALL) RouteCall call)
      throws InterruptedException {
    return answer(call);
  }

  @GetMapping({"/downstream", "/synchronized"})
  ResponseEntity<byte[]> downstream(@RequestAttribute(ContractFilter.CALL) RouteCall call)
      throws InterruptedException {
    return answer(call);
  }

  @GetMapping("/health")
  ResponseEntity<byte[]> health(@RequestAttribute(ContractFilter.CALL) RouteCall call)
      throws InterruptedException {
    return answer(call);
  }

  @GetMapping("/compute")
  ResponseEntity<byte[]> compute(@RequestAttribute(ContractFilter.CALL) RouteCall call)
      throws InterruptedException {
    return answer(call);
  }

  @GetMapping("/block")
  ResponseEntity<byte[]> block(@RequestAttribute(ContractFilter.CALL) RouteCall call)
      throws InterruptedException {
    return answer(call);
  }

  @GetMapping("/file")
  ResponseEntity<byte[]> file(@RequestAttribute(ContractFilter.CALL) RouteCall call)
      throws InterruptedException {
    return answer(call);
  }

  @GetMapping("/metrics")
  ResponseEntity<byte[]> metrics(@RequestAttribute(ContractFilter.CALL) RouteCall call)
      throws InterruptedException {
    return answer(call);
  }

  private ResponseEntity<byte[]> answer(RouteCall call) throws InterruptedException {
    return Answers.entity(routes.answer(call));
  }
}
