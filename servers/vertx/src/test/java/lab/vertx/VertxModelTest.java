package lab.vertx;

import lab.contract.ServerModel;
import lab.contract.test.ContractTest;

class VertxModelTest extends ContractTest {
  @Override
  protected ServerModel model() {
    return VertxModel.MODEL;
  }

  @Override
  protected String threadName() {
    return "vert.x-eventloop-thread-";
  }
}
