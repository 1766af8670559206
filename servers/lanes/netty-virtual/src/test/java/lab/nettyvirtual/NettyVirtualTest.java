package lab.nettyvirtual;

import lab.conformance.ContractTest;
import lab.shell.ServerModel;

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
