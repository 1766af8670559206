package lab.nettyvirtual;

import lab.contract.ServerModel;
import lab.contract.test.ContractTest;

class NettyVirtualTest extends ContractTest {
  @Override
  protected ServerModel model() {
    return NettyVirtual.MODEL;
  }

  @Override
  protected String threadName() {
    return "vt-request-";
  }

  @Override
  protected boolean limitsClients() {
    return true;
  }
}
