package lab.work.blocking;

import io.prometheus.metrics.core.metrics.Counter;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.stream.IntStream;
import lab.shell.ModelContext;
import lab.work.DownstreamAddress;
import lab.work.DownstreamLimits;
import lab.work.blocking.DownstreamConnection.StaleException;
import org.jspecify.annotations.Nullable;

/**
 * Asks the downstream over kept-alive connections, most recently used first. No library's, as the
 * client decides at 5,000 connections: measured in MODEL.md of jdk-virtual.
 */
final class SocketClient implements DownstreamClient {
  /**
   * Some connections, while they are idle, and the deadlines of their calls. Were all in one, each
   * call would pass a lock and a list's head that an event loop has none of.
   */
  record Share(ConcurrentLinkedDeque<DownstreamConnection> idle, Watchdog watchdog) {
    Share(int number) {
      this(new ConcurrentLinkedDeque<>(), new Watchdog("downstream-deadlines-" + number));
    }
  }

  private final DownstreamAddress address;
  private final Counter retries;
  private final Duration keepIdle;
  final List<Share> shares;
  private final Sweeper pruner;

  SocketClient(ModelContext context) {
    // A look-up of its name has no deadline, so no call makes one.
    address =
        new DownstreamAddress(context.settings().downstreamUrl(), SocketClient::onItsOwnThread);
    retries = context.downstream().retries();
    shares =
        IntStream.rangeClosed(1, Runtime.getRuntime().availableProcessors())
            .mapToObj(Share::new)
            .toList();
    keepIdle = context.settings().downstreamKeepIdle();
    pruner = new Sweeper("downstream-idle", DownstreamLimits.betweenLooks(keepIdle), this::prune);
  }

  @Override
  public byte @Nullable [] get(long deadlineNanos) throws IOException {
    int share = (int) (Thread.currentThread().threadId() % shares.size());
    DownstreamConnection kept = takeIdle(share);
    if (kept != null) {
      try {
        return exchange(kept, deadlineNanos);
      } catch (StaleException e) {
        // The downstream closed it while it was idle: once more, on a new one.
        retries.inc();
      }
    }
    return exchange(new DownstreamConnection(shares.get(share), address.current()), deadlineNanos);
  }

  /** Closes what is idle; a call under way keeps its connection until it ends. */
  @Override
  public void close() {
    pruner.close();
    for (Share share : shares) {
      share.watchdog.close();
      for (DownstreamConnection each = share.idle.pollFirst();
          each != null;
          each = share.idle.pollFirst()) {
        each.close();
      }
    }
  }

  /** Of a thread's own share, else of another. */
  private @Nullable DownstreamConnection takeIdle(int share) {
    DownstreamConnection taken = null;
    for (int i = 0; taken == null && i < shares.size(); i++) {
      taken = shares.get((share + i) % shares.size()).idle.pollFirst();
    }
    return taken;
  }

  private byte @Nullable [] exchange(DownstreamConnection connection, long deadlineNanos)
      throws IOException {
    try {
      return connection.exchange(address.request(), deadlineNanos);
    } finally {
      connection.giveBack();
    }
  }

  private static void onItsOwnThread(Runnable lookUp) {
    var unused = Thread.ofPlatform().daemon().name("downstream-address").start(lookUp);
  }

  private void prune() {
    shares.forEach(share -> prune(share.idle));
  }

  private void prune(ConcurrentLinkedDeque<DownstreamConnection> idle) {
    // The last one has been idle longest.
    DownstreamConnection oldest = idle.peekLast();
    while (oldest != null && oldest.isIdleLongerThan(keepIdle.toNanos())) {
      // Taken from the end; a caller may have been faster, then another one is closed.
      DownstreamConnection taken = idle.pollLast();
      if (taken != null) {
        taken.close();
      }
      oldest = idle.peekLast();
    }
  }
}
