package lab.contract.downstream;

import java.net.InetSocketAddress;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The downstream's address, for threads that must not block. A look-up of a name blocks, so an
 * executor does it, again when the last one is some seconds old. Meanwhile the old address holds.
 */
public final class DownstreamAddress {
  private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(5);

  private final String host;
  private final int port;
  private final Executor lookUps;
  private final AtomicBoolean isLookingUp = new AtomicBoolean();
  private volatile long lookedUpNanos = System.nanoTime();
  private volatile InetSocketAddress address;

  /**
   * Looks the name up on the calling thread, which may block.
   *
   * @param lookUps runs later look-ups, which may block
   */
  public DownstreamAddress(String host, int port, Executor lookUps) {
    this.host = host;
    this.port = port;
    this.lookUps = lookUps;
    this.address = new InetSocketAddress(host, port);
  }

  /** The latest address known; unresolved while the name is unknown. Any thread; never blocks. */
  public InetSocketAddress current() {
    if (System.nanoTime() - lookedUpNanos > FRESH_NANOS && isLookingUp.compareAndSet(false, true)) {
      boolean begun = false;
      try {
        lookUps.execute(this::lookUp);
        begun = true;
      } finally {
        if (!begun) {
          // There was no thread for it: the next call tries again.
          isLookingUp.set(false);
        }
      }
    }
    return address;
  }

  private void lookUp() {
    InetSocketAddress found = new InetSocketAddress(host, port);
    if (!found.isUnresolved() || address.isUnresolved()) {
      address = found;
    }
    lookedUpNanos = System.nanoTime();
    isLookingUp.set(false);
  }
}
