package lab.vertx;

import lab.contract.ServerModel;
import lab.contract.test.ContractTest;

class VertxModelTest extends ContractTest {
  @Override
  protected ServerModel model() {
    return VertxModel.LEVELLED;
  }

  @Override
  protected String threadName() {
    return "vert.x-eventloop-thread-";
  }
}
