package lab.work.nonblocking;

import io.prometheus.metrics.core.metrics.Counter;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import lab.observe.DownstreamMetrics;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.DownstreamOutcome;
import lab.work.ConnectionCap;
import lab.work.DownstreamAddress;
import lab.work.DownstreamLimits;
import lab.work.nonblocking.LoopServices.Pending;
import org.jspecify.annotations.Nullable;

/**
 * One loop's calls of the downstream, over connections kept on the loop, most recently used first.
 * Its thread only, except {@link Call#granted}.
 *
 * <pre>
 *   call --&gt; a place under the cap? --yes--&gt; idle connection, else a new one --&gt; answer
 *                 '--no--&gt; waiting --a place comes free--^
 *   at the deadline, wherever the call is: given up, and its connection with it
 * </pre>
 */
public abstract class DownstreamPool {
  /** What a call waits for. */
  @FunctionalInterface
  public interface Closeable {
    /** Closes it, at the call's deadline: the call is told nothing more. */
    void close();
  }

  /** A kept-alive connection, with one call at a time. */
  public interface Connection extends Closeable {
    boolean isOpen();

    /** Since when it has been {@link #keep kept}, by {@link System#nanoTime}. */
    long idleSinceNanos();

    /** Sends the request; one of the call's methods takes how it ends, perhaps at once. */
    void ask(Call call);
  }

  private final LoopServices loop;
  private final DownstreamLimits limits;
  private final DownstreamAddress address;
  private final DownstreamMetrics metrics;
  private final Counter retries;

  /** Last in, first out; those closed by the downstream meanwhile are dropped when met. */
  private final ArrayDeque<Connection> idle = new ArrayDeque<>();

  protected DownstreamPool(
      ModelContext context, LoopServices loop, DownstreamLimits limits, DownstreamAddress address) {
    this.loop = loop;
    this.limits = limits;
    this.address = address;
    this.metrics = context.downstream();
    this.retries = metrics.retries();
  }

  /** Begins to connect, tells the call of it by {@link Call#uses}, and asks when connected. */
  protected abstract void connect(InetSocketAddress to, Call call);

  /** Calls the downstream; one deadline holds for all of it. Takes the answer, or its failure's. */
  public final void call(Consumer<Answer> to) {
    Call call = new Call(to);
    if (limits.cap().enter(call)) {
      call.begin(call.askedNanos);
    }
  }

  public final void keep(Connection connection) {
    idle.addLast(connection);
  }

  /** Closes what nobody has used for long. */
  public final void closeIdle(long nowNanos) {
    long most = limits.keepIdle().toNanos();
    Connection oldest = idle.peekFirst();
    while (oldest != null && (!oldest.isOpen() || nowNanos - oldest.idleSinceNanos() > most)) {
      idle.removeFirst();
      oldest.close();
      oldest = idle.peekFirst();
    }
  }

  /** One call, from asking to its end. */
  public final class Call extends ConnectionCap.Waiter implements Runnable {
    private final Consumer<Answer> to;
    private final long askedNanos = System.nanoTime();
    private final Pending deadline;
    private long begunNanos;
    private boolean begun;
    private boolean ended;
    private @Nullable Closeable used;

    private Call(Consumer<Answer> to) {
      this.to = to;
      this.deadline = loop.after(limits.timeoutNanos(), this);
    }

    public boolean hasEnded() {
      return ended;
    }

    public void uses(Closeable connecting) {
      used = connecting;
    }

    public void ask(Connection connection) {
      used = connection;
      connection.ask(this);
    }

    /** The answer is complete. */
    public void answered(int status, byte[] body) {
      if (status == 200) {
        end(DownstreamOutcome.OK, Answer.ok(body));
      } else {
        failed(DownstreamOutcome.ERROR);
      }
    }

    /** Its connection is lost, or was never made. */
    public void failed(DownstreamOutcome outcome) {
      end(outcome, Answer.downstreamFailed(outcome));
    }

    /** The downstream had closed a kept connection before it could answer: once more, on a new. */
    public void stale() {
      if (!ended) {
        retries.inc();
        connect(address.current(), this);
      }
    }

    /** Its deadline. */
    @Override
    public void run() {
      Closeable broken = used;
      failed(DownstreamOutcome.TIMEOUT);
      if (broken != null) {
        broken.close();
      }
    }

    /** As a task, on the loop too: the call that gives its place away is to be answered first. */
    @Override
    protected void granted() {
      try {
        loop.execute(() -> begin(System.nanoTime()));
      } catch (RejectedExecutionException e) {
        // The server has stopped.
        limits.cap().leave();
      }
    }

    private void begin(long nowNanos) {
      if (ended) {
        // Its deadline passed after the place was granted.
        limits.cap().leave();
        return;
      }
      begun = true;
      begunNanos = nowNanos;
      Connection kept = idle.pollLast();
      while (kept != null && !kept.isOpen()) {
        kept = idle.pollLast();
      }
      if (kept == null) {
        connect(address.current(), this);
      } else {
        ask(kept);
      }
    }

    private void end(DownstreamOutcome outcome, Answer answer) {
      if (ended) {
        return;
      }
      ended = true;
      used = null;
      deadline.cancel();
      long now = System.nanoTime();
      if (begun) {
        limits.cap().leave();
        long unreadNanos = outcome == DownstreamOutcome.OK ? now - loop.readyNanos(begunNanos) : 0;
        metrics.ended(outcome, begunNanos - askedNanos, now - begunNanos, unreadNanos);
      } else {
        // If its place has just been granted, begin() is under way and leaves it.
        var unused = limits.cap().giveUp(this);
        metrics.neverBegun(outcome, now - askedNanos);
      }
      to.accept(answer);
    }
  }
}
