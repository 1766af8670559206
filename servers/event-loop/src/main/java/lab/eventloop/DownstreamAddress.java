package lab.eventloop;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.net.InetSocketAddress;
import java.net.URI;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Where the downstream is, and what to ask it. Looking a name up blocks, so it is done on a helper
 * thread, again when the last look is some seconds old, and meanwhile the old address holds.
 */
final class DownstreamAddress {
  private static final long FRESH_NANOS = 5_000_000_000L;

  private final String host;
  private final int port;
  private final byte[] request;
  private final Executor helpers;
  private final AtomicBoolean looking = new AtomicBoolean();
  private final AtomicLong lookedNanos = new AtomicLong(System.nanoTime());
  private volatile InetSocketAddress address;

  /** Looks the name up on the calling thread, which may block. */
  DownstreamAddress(URI url, Executor helpers) {
    this.host = url.getHost();
    this.port = url.getPort() < 0 ? 80 : url.getPort();
    this.helpers = helpers;
    String target =
        url.getRawQuery() == null ? url.getRawPath() : url.getRawPath() + "?" + url.getRawQuery();
    this.request =
        "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\n\r\n"
            .formatted(target, url.getRawAuthority())
            .getBytes(ISO_8859_1);
    this.address = new InetSocketAddress(host, port);
  }

  /** The latest address known, perhaps unresolved. Any thread; does not block. */
  InetSocketAddress current() {
    if (System.nanoTime() - lookedNanos.get() > FRESH_NANOS && looking.compareAndSet(false, true)) {
      helpers.execute(
          () -> {
            InetSocketAddress found = new InetSocketAddress(host, port);
            if (!found.isUnresolved() || address.isUnresolved()) {
              address = found;
            }
            lookedNanos.set(System.nanoTime());
            looking.set(false);
          });
    }
    return address;
  }

  /** The request's bytes, never changed. */
  byte[] request() {
    return request;
  }
}
