package lab.jdkpool;

import java.util.List;
import lab.conformance.ContractTest;
import lab.conformance.InAnotherJvm;
import lab.conformance.Launcher;
import lab.shell.ServerModel;

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
