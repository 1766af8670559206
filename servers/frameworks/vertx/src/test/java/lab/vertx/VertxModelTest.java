package lab.vertx;

import java.util.List;
import lab.conformance.ContractTest;
import lab.shell.ServerModel;

class VertxModelTest extends ContractTest {
  @Override
  protected ServerModel model() {
    return VertxModel.MODEL;
  }

  @Override
  protected String threadName() {
    return "vert.x-eventloop-thread-";
  }

  @Override
  protected List<String> asShipped() {
    return List.of(
        "\"transport\":\"native\"",
        "\"longest_head\":8192",
        "\"loops\":" + 2 * Runtime.getRuntime().availableProcessors());
  }
}
