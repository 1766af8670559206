package lab.fixedpool;

import lab.conformance.ContractTest;
import lab.shell.ServerModel;

class FixedPoolTest extends ContractTest {
  @Override
  protected Class<?> main() {
    return FixedPool.class;
  }

  @Override
  protected ServerModel model() {
    return FixedPool.MODEL;
  }

  @Override
  protected boolean hasDemonstrations() {
    return true;
  }

  @Override
  protected String threadName() {
    return "pool-";
  }

  @Override
  protected boolean limitsClients() {
    return true;
  }

  @Override
  protected boolean hasWorkerPool() {
    return true;
  }
}
