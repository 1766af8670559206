package lab.virtualthreads;

import static lab.conformance.ContractTest.Trait.DEMONSTRATIONS;
import static lab.conformance.ContractTest.Trait.LIMITS_CLIENTS;

import lab.conformance.ContractTest;

class VirtualThreadsTest extends ContractTest {
  VirtualThreadsTest() {
    super(VirtualThreads.MODEL, "vt-request-", DEMONSTRATIONS, LIMITS_CLIENTS);
  }

  @Override
  protected Class<?> main() {
    return VirtualThreads.class;
  }
}
