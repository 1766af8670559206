package lab.virtualthreads;

import java.util.List;
import lab.contract.ServerModel;
import lab.contract.test.ContractTest;
import lab.contract.test.InAnotherJvm;
import lab.contract.test.Launcher;

class VirtualThreadsTest extends ContractTest {
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

  /** The JDK's server looks at idle clients every 10 s, unless told otherwise. */
  @Override
  protected Launcher launcherOfItsOwn() {
    return new InAnotherJvm(VirtualThreads.class, List.of("-Dsun.net.httpserver.clockTick=250"));
  }
}
