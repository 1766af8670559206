package lab.virtualthreads;

import lab.conformance.ContractTest;

class VirtualThreadsTest extends ContractTest {
  VirtualThreadsTest() {
    super(VirtualThreads.MODEL, "vt-request-");
  }
}
