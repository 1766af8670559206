package lab.fixedpool;

import java.util.List;
import lab.contract.ServerModel;
import lab.contract.test.ContractTest;
import lab.contract.test.InAnotherJvm;
import lab.contract.test.Launcher;

class FixedPoolTest extends ContractTest {
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
  protected boolean hasWorkerPool() {
    return true;
  }

  /** The JDK's server looks at idle clients every 10 s, unless told otherwise. */
  @Override
  protected Launcher launcherOfItsOwn() {
    return new InAnotherJvm(FixedPool.class, List.of("-Dsun.net.httpserver.clockTick=250"));
  }
}
