package lab.jdkpool;

import lab.conformance.ContractTest;

class JdkPoolTest extends ContractTest {
  JdkPoolTest() {
    super(JdkPool.MODEL, "pool-");
  }
}
