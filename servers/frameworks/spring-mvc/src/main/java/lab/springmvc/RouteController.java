package lab.springmvc;

import lab.spec.RouteCall;
import lab.spring.SpringServer;
import lab.work.blocking.BlockingRoutes;
import lab.work.handover.HandOver;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestAttribute;
import org.springframework.web.bind.annotation.RestController;

/** The routes. Each blocks the request's thread until its answer is known. */
@RestController
record RouteController(BlockingRoutes routes) {
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
  ResponseEntity<byte[]> answer(@RequestAttribute(ContractFilter.CALL) RouteCall call)
      throws InterruptedException {
    try {
      return SpringServer.entity(routes.answer(call));
    } finally {
      HandOver.ticket().leave();
    }
  }
}
