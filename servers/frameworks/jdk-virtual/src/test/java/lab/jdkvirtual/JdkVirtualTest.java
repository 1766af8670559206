package lab.jdkvirtual;

import java.util.List;
import lab.conformance.ContractTest;
import lab.conformance.InAnotherJvm;
import lab.conformance.Launcher;
import lab.shell.ServerModel;

class JdkVirtualTest extends ContractTest {
  @Override
  protected ServerModel model() {
    return JdkVirtual.MODEL;
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
    return new InAnotherJvm(JdkVirtual.class, List.of("-Dsun.net.httpserver.clockTick=250"));
  }
}
