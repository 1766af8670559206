package lab.nettyloops;

import static lab.conformance.ContractTest.Trait.DEMONSTRATIONS;
import static lab.conformance.ContractTest.Trait.LIMITS_CLIENTS;
import static lab.conformance.ContractTest.Trait.TELLS_UNREAD;

import lab.conformance.ContractTest;

class NettyTest extends ContractTest {
  NettyTest() {
    super(Netty.MODEL, "netty-loop-", DEMONSTRATIONS, LIMITS_CLIENTS, TELLS_UNREAD);
  }

  @Override
  protected Class<?> main() {
    return Netty.class;
  }
}
