package lab.virtualthreads;

import lab.conformance.ContractTest;
import lab.shell.ServerModel;

class VirtualThreadsTest extends ContractTest {
  @Override
  protected Class<?> main() {
    return VirtualThreads.class;
  }

  @Override
  protected ServerModel model() {
    return VirtualThreads.MODEL;
  }

  @Override
  protected boolean hasDemonstrations() {
    return true;
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
