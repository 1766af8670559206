package lab.quarkusvirtual;

import java.nio.file.Path;
import java.util.List;
import lab.conformance.ContractTest;
import lab.conformance.InItsOwnJvm;
import lab.conformance.Launcher;
import lab.shell.ServerModel;

/** Runs what was packaged: Quarkus is what its build makes of the classes. */
class QuarkusVirtualTest extends ContractTest {
  @Override
  protected ServerModel model() {
    return QuarkusVirtual.MODEL;
  }

  @Override
  protected Launcher launcher() {
    return new InItsOwnJvm(Path.of("target", "app", "server.jar"));
  }

  @Override
  protected String threadName() {
    return "quarkus-virtual-thread-";
  }

  @Override
  protected boolean retriesOnClosedConnections() {
    return false;
  }

  @Override
  protected List<String> asShipped() {
    return List.of("\"transport\":\"native\"", "\"http2\":true");
  }
}
