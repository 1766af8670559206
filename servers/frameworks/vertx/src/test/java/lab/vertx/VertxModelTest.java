package lab.vertx;

import java.util.List;
import lab.conformance.ContractTest;

class VertxModelTest extends ContractTest {
  VertxModelTest() {
    super(VertxModel.MODEL, "vert.x-eventloop-thread-");
  }

  @Override
  protected List<String> asShipped() {
    return List.of("\"transport\":\"native\"", "\"longest_head\":8192");
  }
}
