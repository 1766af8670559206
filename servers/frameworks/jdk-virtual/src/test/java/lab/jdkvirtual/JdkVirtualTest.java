package lab.jdkvirtual;

import lab.conformance.ContractTest;

class JdkVirtualTest extends ContractTest {
  JdkVirtualTest() {
    super(JdkVirtual.MODEL, "vt-request-");
  }
}
