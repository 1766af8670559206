package lab.quarkusvirtual;

import java.nio.file.Path;
import java.util.List;
import lab.conformance.ContractTest;

/** Runs what was packaged: Quarkus is what its build makes of the classes. */
class QuarkusVirtualTest extends ContractTest {
  QuarkusVirtualTest() {
    super(QuarkusVirtual.MODEL, "quarkus-virtual-thread-");
  }

  @Override
  protected Path jar() {
    return Path.of("target", "app", "server.jar");
  }

  @Override
  protected List<String> asShipped() {
    return List.of("\"transport\":\"native\"", "\"http2\":true");
  }
}
