package lab.work;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.net.URI;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;

/**
 * The downstream's address, for threads that must not block. A look-up of a name blocks, so an
 * executor does it, again when the last one is some seconds old. Meanwhile the old address holds.
 */
public final class DownstreamAddress {
  private static final Logger LOG = System.getLogger(DownstreamAddress.class.getName());
  private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(5);

  private final URI url;
  private final byte[] request;
  private final Executor lookUps;
  private final LongSupplier nanoTime;
  private final AtomicBoolean isLookingUp = new AtomicBoolean();
  private volatile long lookedUpNanos;
  private volatile InetSocketAddress address;

  /** Looks the name up on the calling thread, which may block; later ones run on the executor. */
  public DownstreamAddress(URI url, Executor lookUps) {
    this(url, lookUps, System::nanoTime);
  }

  DownstreamAddress(URI url, Executor lookUps, LongSupplier nanoTime) {
    this.url = url;
    this.lookUps = lookUps;
    this.nanoTime = nanoTime;
    this.address = resolve();
    this.lookedUpNanos = nanoTime.getAsLong();
    String query = url.getRawQuery() == null ? "" : "?" + url.getRawQuery();
    this.request =
        "GET %s%s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\n\r\n"
            .formatted(url.getRawPath(), query, url.getRawAuthority())
            .getBytes(ISO_8859_1);
  }

  /** The request that every call sends, whole. Never changed. */
  public byte[] request() {
    return request;
  }

  /** The latest address known; unresolved while the name is unknown. Any thread; never blocks. */
  public InetSocketAddress current() {
    if (nanoTime.getAsLong() - lookedUpNanos > FRESH_NANOS
        && isLookingUp.compareAndSet(false, true)) {
      try {
        lookUps.execute(this::lookUp);
      } catch (RuntimeException | Error e) {
        // There was no thread for it: no call's fault.
        LOG.log(Level.WARNING, "the downstream's name is not looked up for now: {0}", e.toString());
        lookedUpNanos = nanoTime.getAsLong();
        isLookingUp.set(false);
      }
    }
    return address;
  }

  private void lookUp() {
    InetSocketAddress found = resolve();
    if (!found.isUnresolved() || address.isUnresolved()) {
      address = found;
    }
    lookedUpNanos = nanoTime.getAsLong();
    isLookingUp.set(false);
  }

  private InetSocketAddress resolve() {
    return new InetSocketAddress(url.getHost(), url.getPort() < 0 ? 80 : url.getPort());
  }
}
