package lab.nettyloops;

import java.util.Map;

/** The same on Netty's own transport. */
class EpollTest extends NettyTest {
  @Override
  protected Map<String, String> settings() {
    return Map.of("LAB_NETTY_TRANSPORT", "epoll");
  }
}
