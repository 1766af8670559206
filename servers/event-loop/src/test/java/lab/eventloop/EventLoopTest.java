package lab.eventloop;

import lab.contract.ServerModel;
import lab.contract.test.ContractTest;

class EventLoopTest extends ContractTest {
  @Override
  protected ServerModel model() {
    return EventLoop.MODEL;
  }

  @Override
  protected String threadName() {
    return "loop-";
  }
}
