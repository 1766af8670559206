package lab.vertx;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URI;
import java.nio.charset.StandardCharsets;
import lab.contract.ServerModel;
import lab.contract.test.ContractTest;
import org.junit.jupiter.api.Test;

/** The contract, and that what Vert.x brings is in force. */
class VertxShippedTest extends ContractTest {
  @Override
  protected ServerModel model() {
    return VertxModel.SHIPPED;
  }

  @Override
  protected String threadName() {
    return "vert.x-eventloop-thread-";
  }

  @Test
  void itsTransportAndItsNumberOfLoopsAreReadBack() throws Exception {
    URI settings = URI.create("http://127.0.0.1:%d/settings".formatted(start().managementPort()));
    try (var body = settings.toURL().openStream()) {
      assertThat(new String(body.readAllBytes(), StandardCharsets.UTF_8))
          .contains("\"transport\":\"native\"")
          .contains("\"loops\":" + 2 * Runtime.getRuntime().availableProcessors());
    }
  }
}
