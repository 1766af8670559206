package lab.helidon;

import java.util.List;
import lab.conformance.ContractTest;

class HelidonTest extends ContractTest {
  HelidonTest() {
    super(Helidon.MODEL, "[0x");
  }

  @Override
  protected List<String> asShipped() {
    return List.of("\"client_connections_kept\":256", "\"longest_head\":16384");
  }
}
