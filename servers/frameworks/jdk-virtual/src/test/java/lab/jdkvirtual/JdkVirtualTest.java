package lab.jdkvirtual;

import static lab.conformance.ContractTest.Trait.DEMONSTRATIONS;

import java.util.List;
import lab.conformance.ContractTest;
import lab.conformance.InAnotherJvm;
import lab.conformance.Launcher;

class JdkVirtualTest extends ContractTest {
  JdkVirtualTest() {
    super(JdkVirtual.MODEL, "vt-request-", DEMONSTRATIONS);
  }

  /** The JDK's server looks at idle clients every 10 s, unless told otherwise. */
  @Override
  protected Launcher launcherOfItsOwn() {
    return new InAnotherJvm(JdkVirtual.class, List.of("-Dsun.net.httpserver.clockTick=250"));
  }
}
