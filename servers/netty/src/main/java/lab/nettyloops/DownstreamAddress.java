package lab.nettyloops;

import io.netty.channel.EventLoop;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Where the downstream is. A name is looked up off the loops, as the JDK's lookup blocks. */
final class DownstreamAddress {
  private record Known(InetSocketAddress address, long atNanos) {}

  /** How long an address is good for; the JDK keeps its own for 30 s. */
  private static final long GOOD_FOR_NANOS = TimeUnit.SECONDS.toNanos(10);

  private final String host;
  private final int port;
  private volatile @Nullable Known known;

  DownstreamAddress(String host, int port) {
    this.host = host;
    this.port = port;
  }

  /** Hands over the address on the loop, at once when it is known; null when there is none. */
  void find(EventLoop loop, Consumer<@Nullable InetSocketAddress> then) {
    Known last = known;
    if (last != null && System.nanoTime() - last.atNanos < GOOD_FOR_NANOS) {
      then.accept(last.address);
      return;
    }
    var _ =
        Thread.ofVirtual()
            .name("downstream-lookup")
            .start(
                () -> {
                  InetSocketAddress found = lookUp();
                  loop.execute(() -> then.accept(found));
                });
  }

  private @Nullable InetSocketAddress lookUp() {
    try {
      InetSocketAddress found = new InetSocketAddress(InetAddress.getByName(host), port);
      known = new Known(found, System.nanoTime());
      return found;
    } catch (UnknownHostException e) {
      return null;
    }
  }
}
