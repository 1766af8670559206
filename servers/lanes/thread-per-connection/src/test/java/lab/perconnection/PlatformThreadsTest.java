package lab.perconnection;

import java.util.Map;

/** The same on threads of the kernel. */
class PlatformThreadsTest extends ThreadPerConnectionTest {
  @Override
  protected Map<String, String> settings() {
    return Map.of("LAB_CONNECTION_THREADS", "platform");
  }

  @Override
  protected String threadName() {
    return "connection-";
  }
}
