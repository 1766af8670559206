package lab.fixedpool;

import lab.contract.ServerModel;
import lab.contract.test.ContractTest;

class FixedPoolTest extends ContractTest {
  @Override
  protected ServerModel model() {
    return FixedPool.MODEL;
  }

  @Override
  protected String threadName() {
    return "pool-";
  }

  @Override
  protected boolean hasWorkerPool() {
    return true;
  }
}
