package lab.fixedpool;

import static lab.conformance.ContractTest.Trait.DEMONSTRATIONS;
import static lab.conformance.ContractTest.Trait.LIMITS_CLIENTS;
import static lab.conformance.ContractTest.Trait.WORKER_POOL;

import lab.conformance.ContractTest;

class FixedPoolTest extends ContractTest {
  FixedPoolTest() {
    super(FixedPool.MODEL, "pool-", DEMONSTRATIONS, WORKER_POOL, LIMITS_CLIENTS);
  }

  @Override
  protected Class<?> main() {
    return FixedPool.class;
  }
}
