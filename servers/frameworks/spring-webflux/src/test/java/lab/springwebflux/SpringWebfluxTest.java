package lab.springwebflux;

import java.util.List;
import lab.conformance.ContractTest;

class SpringWebfluxTest extends ContractTest {
  /** Timers fire on Reactor's threads for work that does not block. */
  SpringWebfluxTest() {
    super(SpringWebflux.MODEL, "parallel-");
  }

  /** Reactor Netty brings a native transport for one architecture only. */
  @Override
  protected List<String> asShipped() {
    boolean brought = System.getProperty("os.arch").equals("amd64");
    return brought ? List.of("\"transport\":\"native\"") : List.of();
  }
}
