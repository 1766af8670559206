package lab.springwebflux;

import java.util.List;
import lab.conformance.ContractTest;
import lab.shell.ServerModel;

class SpringWebfluxTest extends ContractTest {
  @Override
  protected ServerModel model() {
    return SpringWebflux.MODEL;
  }

  /** Timers fire on Reactor's threads for work that does not block. */
  @Override
  protected String threadName() {
    return "parallel-";
  }

  /** Reactor Netty brings a native transport for one architecture only. */
  @Override
  protected List<String> asShipped() {
    boolean brought = System.getProperty("os.arch").equals("amd64");
    return brought ? List.of("\"transport\":\"native\"") : List.of();
  }
}
