package lab.helidon;

import java.util.Set;
import lab.contract.ServerModel;
import lab.contract.test.ContractTest;

class HelidonTest extends ContractTest {
  @Override
  protected ServerModel model() {
    return Helidon.MODEL;
  }

  @Override
  protected String threadName() {
    return "[0x";
  }

  @Override
  protected Set<String> unreadableBodies() {
    return Set.of("ANSWER_IN_CHUNKS", "ANSWER_UNTIL_CLOSE");
  }
}
