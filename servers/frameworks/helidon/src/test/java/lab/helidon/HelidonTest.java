package lab.helidon;

import java.util.List;
import java.util.Set;
import lab.conformance.ContractTest;

class HelidonTest extends ContractTest {
  HelidonTest() {
    super(Helidon.MODEL, "[0x");
  }

  @Override
  protected Set<String> unreadableBodies() {
    return Set.of("ANSWER_IN_CHUNKS", "ANSWER_UNTIL_CLOSE");
  }

  @Override
  protected List<String> asShipped() {
    return List.of("\"client_connections_kept\":256", "\"longest_head\":16384");
  }
}
