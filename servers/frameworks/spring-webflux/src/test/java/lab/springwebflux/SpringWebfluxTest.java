package lab.springwebflux;

import java.util.List;
import lab.conformance.ContractTest;

class SpringWebfluxTest extends ContractTest {
  /** Timers fire on Reactor's threads for work that does not block. */
  SpringWebfluxTest() {
    super(SpringWebflux.MODEL, "parallel-");
  }

  /** Not its transport: Reactor Netty brings a native one for one architecture only. */
  @Override
  protected List<String> asShipped() {
    return List.of("\"downstream_keep_idle_s\":null");
  }
}
