package lab.fixedpool;

import java.util.Map;

/** The same pool, whose idle threads take the next request last in, first out. */
class LifoPoolTest extends FixedPoolTest {
  @Override
  protected Map<String, String> settings() {
    return Map.of("LAB_POOL_ORDER", "lifo");
  }
}
