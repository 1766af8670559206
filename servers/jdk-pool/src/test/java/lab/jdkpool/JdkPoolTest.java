package lab.jdkpool;

import java.util.List;
import lab.contract.ServerModel;
import lab.contract.test.ContractTest;
import lab.contract.test.InAnotherJvm;
import lab.contract.test.Launcher;

class JdkPoolTest extends ContractTest {
  @Override
  protected ServerModel model() {
    return JdkPool.MODEL;
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
  protected boolean hasWorkerPool() {
    return true;
  }

  /** The JDK's server looks at idle clients every 10 s, unless told otherwise. */
  @Override
  protected Launcher launcherOfItsOwn() {
    return new InAnotherJvm(JdkPool.class, List.of("-Dsun.net.httpserver.clockTick=250"));
  }
}
