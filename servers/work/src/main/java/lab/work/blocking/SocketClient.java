package lab.work.blocking;

import io.prometheus.metrics.core.metrics.Counter;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.ConcurrentLinkedDeque;
import lab.shell.ModelContext;
import lab.spec.DownstreamOutcome;
import lab.work.DownstreamAddress;
import lab.work.DownstreamLimits;
import lab.work.DownstreamRequest;
import lab.work.blocking.DownstreamConnection.Reply;
import lab.work.blocking.DownstreamConnection.StaleException;

/**
 * Asks the downstream over kept-alive connections, most recently used first. It is this small
 * client and no library's because the client is what decides at 5,000 connections: see MODEL.md of
 * jdk-virtual for the measurement.
 */
final class SocketClient implements DownstreamClient {
  private final byte[] request;
  private final DownstreamAddress address;
  private final Counter retries;
  private final Duration keepIdle;
  private final ConcurrentLinkedDeque<DownstreamConnection> idle = new ConcurrentLinkedDeque<>();
  private final Watchdog watchdog = new Watchdog("downstream-deadlines");
  private final Sweeper pruner;

  SocketClient(ModelContext context) {
    DownstreamRequest get = DownstreamRequest.get(context.settings().downstreamUrl());
    request = get.bytes();
    // A look-up of its name has no deadline, so no call makes one.
    address = new DownstreamAddress(get.host(), get.port(), SocketClient::onItsOwnThread);
    retries = context.downstream().retries();
    keepIdle = context.settings().downstreamKeepIdle();
    pruner = new Sweeper("downstream-idle", DownstreamLimits.betweenLooks(keepIdle), this::prune);
  }

  @Override
  public byte[] get(long deadlineNanos) throws IOException, DownstreamException {
    Reply reply = exchange(deadlineNanos);
    if (reply.status() != 200) {
      throw new DownstreamException(DownstreamOutcome.ERROR);
    }
    return reply.body();
  }

  /** Closes what is idle; a call under way keeps its connection until it ends. */
  @Override
  public void close() {
    pruner.close();
    watchdog.close();
    for (DownstreamConnection each = idle.pollFirst(); each != null; each = idle.pollFirst()) {
      each.close();
    }
  }

  private Reply exchange(long deadlineNanos) throws IOException {
    DownstreamConnection kept = idle.pollFirst();
    if (kept != null) {
      try {
        return exchange(kept, deadlineNanos);
      } catch (StaleException e) {
        // The downstream closed it while it was idle: once more, on a new one.
        retries.inc();
      }
    }
    return exchange(new DownstreamConnection(watchdog, address.current()), deadlineNanos);
  }

  private Reply exchange(DownstreamConnection connection, long deadlineNanos) throws IOException {
    try {
      return connection.exchange(request, deadlineNanos);
    } finally {
      giveBack(connection);
    }
  }

  private void giveBack(DownstreamConnection connection) {
    if (connection.isReusable()) {
      connection.markIdle();
      idle.addFirst(connection);
    } else {
      connection.close();
    }
  }

  private static void onItsOwnThread(Runnable lookUp) {
    var unused = Thread.ofPlatform().daemon().name("downstream-address").start(lookUp);
  }

  private void prune() {
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
