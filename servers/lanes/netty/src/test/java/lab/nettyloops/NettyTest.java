package lab.nettyloops;

import lab.conformance.ContractTest;
import lab.shell.ServerModel;

class NettyTest extends ContractTest {
  @Override
  protected ServerModel model() {
    return Netty.MODEL;
  }

  @Override
  protected boolean hasDemonstrations() {
    return true;
  }

  @Override
  protected String threadName() {
    return "netty-loop-";
  }

  @Override
  protected boolean limitsClients() {
    return true;
  }

  @Override
  protected boolean tellsUnread() {
    return true;
  }
}
