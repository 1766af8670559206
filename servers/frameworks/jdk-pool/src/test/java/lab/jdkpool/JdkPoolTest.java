package lab.jdkpool;

import static lab.conformance.ContractTest.Trait.DEMONSTRATIONS;
import static lab.conformance.ContractTest.Trait.WORKER_POOL;

import java.util.List;
import lab.conformance.ContractTest;
import lab.conformance.InAnotherJvm;
import lab.conformance.Launcher;

class JdkPoolTest extends ContractTest {
  JdkPoolTest() {
    super(JdkPool.MODEL, "pool-", DEMONSTRATIONS, WORKER_POOL);
  }

  /** The JDK's server looks at idle clients every 10 s, unless told otherwise. */
  @Override
  protected Launcher launcherOfItsOwn() {
    return new InAnotherJvm(JdkPool.class, List.of("-Dsun.net.httpserver.clockTick=250"));
  }
}
