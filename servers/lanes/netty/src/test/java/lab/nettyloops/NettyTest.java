package lab.nettyloops;

import io.netty.util.LeakPresenceDetector;
import lab.conformance.ContractTest;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.RegisterExtension;

class NettyTest extends ContractTest {
  /** When the servers of a class have stopped, all of Netty's buffers are released. */
  @RegisterExtension static final AfterAllCallback LEAKS = _ -> LeakPresenceDetector.check();

  NettyTest() {
    super(Netty.MODEL, "netty-loop-");
  }
}
