package lab.nettyvirtual;

import static lab.conformance.ContractTest.Trait.LIMITS_CLIENTS;

import lab.conformance.ContractTest;

class NettyVirtualTest extends ContractTest {
  NettyVirtualTest() {
    super(NettyVirtual.MODEL, "vt-request-", LIMITS_CLIENTS);
  }

  @Override
  protected Class<?> main() {
    return NettyVirtual.class;
  }
}
