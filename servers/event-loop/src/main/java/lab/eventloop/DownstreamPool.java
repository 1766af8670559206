package lab.eventloop;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import lab.contract.DownstreamMetrics;
import lab.contract.DownstreamOutcome;
import lab.contract.nonblocking.LoopServices.DownstreamCallback;
import org.jspecify.annotations.Nullable;

/**
 * One loop's calls of the downstream, over connections kept on the loop's selector, most recently
 * used first. Its thread only.
 *
 * <pre>
 *   call --&gt; a place under the cap? --yes--&gt; idle connection, else a new one --&gt; answer
 *                 '--no--&gt; waiting --a place comes free--^
 *   at the deadline, wherever the call is: given up, and its connection with it
 * </pre>
 */
final class DownstreamPool {
  /** Idle connections are closed after this long; the downstream keeps them longer. */
  private static final long KEEP_IDLE_NANOS = 60_000_000_000L;

  private static final byte[] NOTHING = new byte[0];

  private final Loop loop;
  private final DownstreamLimits limits;
  private final DownstreamAddress address;
  private final DownstreamMetrics metrics;
  private final ArrayDeque<Call> waiting = new ArrayDeque<>();

  /** Last in, first out; those closed by the downstream meanwhile are dropped when met. */
  private final ArrayDeque<DownstreamConnection> idle = new ArrayDeque<>();

  private boolean isBeginning;

  DownstreamPool(
      Loop loop, DownstreamLimits limits, DownstreamAddress address, DownstreamMetrics metrics) {
    this.loop = loop;
    this.limits = limits;
    this.address = address;
    this.metrics = metrics;
    limits.join(() -> loop.execute(this::beginWaiting));
  }

  /** Calls the downstream; one deadline holds for all of it. */
  void call(DownstreamCallback callback) {
    long now = System.nanoTime();
    Call call = new Call(callback, now);
    loop.timers().set(call, now + limits.timeoutMs() * 1_000_000L);
    if (waiting.isEmpty() && limits.tryEnter()) {
      call.begin(now);
      return;
    }
    waiting.add(call);
    limits.pendingChanged(1);
    // Another loop's place may have come free before it could see this call.
    beginWaiting();
  }

  /** Closes what nobody has used for long. */
  void closeIdle(long nowNanos) {
    DownstreamConnection oldest = idle.peekFirst();
    while (oldest != null
        && (oldest.isClosed() || nowNanos - oldest.idleSinceNanos() > KEEP_IDLE_NANOS)) {
      idle.removeFirst();
      oldest.close();
      oldest = idle.peekFirst();
    }
  }

  private void beginWaiting() {
    if (isBeginning) {
      // A call that fails at once leads back here; the loop below goes on with the next.
      return;
    }
    isBeginning = true;
    try {
      while (!waiting.isEmpty()) {
        if (waiting.getFirst().ended) {
          // Its deadline has passed; it was counted then.
          waiting.removeFirst();
        } else if (limits.tryEnter()) {
          limits.pendingChanged(-1);
          waiting.removeFirst().begin(System.nanoTime());
        } else {
          return;
        }
      }
    } finally {
      isBeginning = false;
    }
  }

  /** One call, from asking to its end. */
  final class Call extends Timers.Timer {
    private final DownstreamCallback callback;
    private final long askedNanos;
    private long begunNanos;
    private boolean begun;
    private boolean ended;
    private @Nullable DownstreamConnection connection;

    Call(DownstreamCallback callback, long askedNanos) {
      this.callback = callback;
      this.askedNanos = askedNanos;
    }

    /** Its deadline. */
    @Override
    void due() {
      DownstreamConnection used = connection;
      connection = null;
      if (used != null) {
        used.close();
      }
      end(DownstreamOutcome.TIMEOUT, NOTHING);
    }

    /** The answer is complete, and its connection free for the next call if it is fit for it. */
    void answered(int status, byte[] body, boolean reusable) {
      DownstreamConnection used = connection;
      connection = null;
      if (used != null) {
        if (reusable) {
          used.rest();
          idle.addLast(used);
        } else {
          used.close();
        }
      }
      end(
          status == 200 ? DownstreamOutcome.OK : DownstreamOutcome.ERROR,
          status == 200 ? body : NOTHING);
    }

    /** Its connection is lost. */
    void failed(DownstreamOutcome outcome) {
      connection = null;
      end(outcome, NOTHING);
    }

    /** The downstream had closed a kept connection before it could answer: once more, on a new. */
    void stale() {
      useNew();
    }

    private void begin(long nowNanos) {
      begun = true;
      begunNanos = nowNanos;
      DownstreamConnection kept = idle.pollLast();
      while (kept != null && kept.isClosed()) {
        kept = idle.pollLast();
      }
      if (kept == null) {
        useNew();
      } else {
        connection = kept;
        kept.ask(this);
      }
    }

    private void useNew() {
      InetSocketAddress to = address.current();
      DownstreamConnection fresh;
      try {
        fresh = DownstreamConnection.open(loop, address.request());
      } catch (IOException e) {
        failed(DownstreamOutcome.ERROR);
        return;
      }
      connection = fresh;
      fresh.connect(to, this);
    }

    private void end(DownstreamOutcome outcome, byte[] body) {
      if (ended) {
        return;
      }
      ended = true;
      loop.timers().cancel(this);
      long now = System.nanoTime();
      if (begun) {
        limits.leave();
        metrics.ended(outcome, begunNanos - askedNanos, now - begunNanos);
        beginWaiting();
        limits.tellWaiting();
      } else {
        limits.pendingChanged(-1);
        metrics.ended(outcome, now - askedNanos, 0);
      }
      callback.ended(outcome, body);
    }
  }
}
