package lab.fixedpool;

import lab.conformance.ContractTest;

class FixedPoolTest extends ContractTest {
  FixedPoolTest() {
    super(FixedPool.MODEL, "pool-");
  }
}
