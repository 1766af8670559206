package lab.quarkusreactive;

import java.nio.file.Path;
import java.util.List;
import lab.conformance.ContractTest;

/** Runs what was packaged: Quarkus is what its build makes of the classes. */
class QuarkusReactiveTest extends ContractTest {
  QuarkusReactiveTest() {
    super(QuarkusReactive.MODEL, "vert.x-eventloop-thread-");
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
