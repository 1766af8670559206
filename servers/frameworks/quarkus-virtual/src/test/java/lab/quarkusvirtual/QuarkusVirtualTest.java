package lab.quarkusvirtual;

import static lab.conformance.ContractTest.Trait.ASKS_ONCE;

import java.nio.file.Path;
import java.util.List;
import lab.conformance.ContractTest;
import lab.conformance.InItsOwnJvm;
import lab.conformance.Launcher;

/** Runs what was packaged: Quarkus is what its build makes of the classes. */
class QuarkusVirtualTest extends ContractTest {
  QuarkusVirtualTest() {
    super(QuarkusVirtual.MODEL, "quarkus-virtual-thread-", ASKS_ONCE);
  }

  @Override
  protected Launcher launcher() {
    return new InItsOwnJvm(Path.of("target", "app", "server.jar"));
  }

  @Override
  protected List<String> asShipped() {
    return List.of("\"transport\":\"native\"", "\"http2\":true");
  }
}
