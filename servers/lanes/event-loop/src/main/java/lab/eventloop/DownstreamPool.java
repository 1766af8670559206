package lab.eventloop;

import static java.util.Objects.requireNonNull;

import io.prometheus.metrics.core.metrics.Counter;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import lab.observe.DownstreamMetrics;
import lab.reactor.Timers;
import lab.spec.DownstreamOutcome;
import lab.wire.HeaderFields;
import lab.work.ConnectionCap;
import lab.work.DownstreamAddress;
import lab.work.DownstreamLimits;
import lab.work.nonblocking.LoopServices.DownstreamCallback;
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
  private static final byte[] NOTHING = new byte[0];

  private final Loop loop;
  private final ConnectionCap cap;
  private final DownstreamLimits limits;
  private final DownstreamAddress address;
  private final ByteBuffer request;
  private final HeaderFields answerFields = new HeaderFields();
  private final DownstreamMetrics metrics;
  private final Counter retries;

  /** Last in, first out; those closed by the downstream meanwhile are dropped when met. */
  private final ArrayDeque<DownstreamConnection> idle = new ArrayDeque<>();

  /** Calls that waited, have their place now, and are about to begin. */
  private final ArrayDeque<Call> granted = new ArrayDeque<>();

  private boolean isBeginning;

  DownstreamPool(
      Loop loop,
      DownstreamLimits limits,
      DownstreamAddress address,
      byte[] request,
      DownstreamMetrics metrics) {
    this.loop = loop;
    this.limits = limits;
    this.cap = limits.cap();
    this.address = address;
    this.request = ByteBuffer.allocateDirect(request.length).put(request);
    this.metrics = metrics;
    this.retries = metrics.retries();
  }

  /** Calls the downstream; one deadline holds for all of it. */
  void call(DownstreamCallback callback) {
    long now = System.nanoTime();
    Call call = new Call(callback, now);
    loop.timers().set(call, now + limits.timeoutNanos());
    // Only a call that has to wait needs a waiter.
    if (cap.tryEnter() || cap.enter(call.waiter())) {
      call.begin(now);
    }
  }

  /** Closes what nobody has used for long. */
  void closeIdle(long nowNanos) {
    long most = limits.keepIdle().toNanos();
    DownstreamConnection oldest = idle.peekFirst();
    while (oldest != null && (oldest.isClosed() || nowNanos - oldest.idleSinceNanos() > most)) {
      idle.removeFirst();
      oldest.close();
      oldest = idle.peekFirst();
    }
  }

  /** Begins a call that waited for its place. */
  private void beginGranted(Call call) {
    granted.add(call);
    if (isBeginning) {
      // A call that failed at once gave its place to this one: the loop below begins it.
      return;
    }
    isBeginning = true;
    try {
      for (Call next = granted.poll(); next != null; next = granted.poll()) {
        if (next.ended) {
          // Its deadline passed after the place was granted.
          cap.leave();
        } else {
          next.begin(System.nanoTime());
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
    private ConnectionCap.@Nullable Waiter waiter;
    private @Nullable DownstreamConnection connection;

    Call(DownstreamCallback callback, long askedNanos) {
      this.callback = callback;
      this.askedNanos = askedNanos;
    }

    /** Takes its place when it has to wait for one. */
    private ConnectionCap.Waiter waiter() {
      ConnectionCap.Waiter waiting =
          new ConnectionCap.Waiter() {
            // Any thread: the place may have been another loop's.
            @Override
            protected void granted() {
              loop.runSoon(() -> beginGranted(Call.this));
            }
          };
      waiter = waiting;
      return waiting;
    }

    /** Its deadline. */
    @Override
    protected void due() {
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
      retries.inc();
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
        fresh = DownstreamConnection.open(loop, request, answerFields);
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
      if (!begun) {
        // If its place has just been granted, beginGranted is under way and leaves it.
        var unused = cap.giveUp(requireNonNull(waiter));
        metrics.neverBegun(outcome, now - askedNanos);
        callback.ended(outcome, body);
        return;
      }
      long unreadNanos =
          outcome == DownstreamOutcome.OK ? now - loop.probe().readyNanos(begunNanos) : 0;
      metrics.ended(outcome, begunNanos - askedNanos, now - begunNanos, unreadNanos);
      // The next call begins on this thread: not before this one is answered.
      try {
        callback.ended(outcome, body);
      } finally {
        cap.leave();
      }
    }
  }
}
