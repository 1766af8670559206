package lab.nettyloops;

import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.util.concurrent.ScheduledFuture;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import lab.spec.DownstreamOutcome;
import lab.work.ConnectionCap;
import lab.work.nonblocking.LoopServices.DownstreamCallback;
import org.jspecify.annotations.Nullable;

/**
 * One call of the downstream. One deadline holds for all of it.
 *
 * <pre>
 *   waiting for a place --granted--> [idle connection?] --yes--> asked --answer--> ended
 *          |                              |  no                  |  ^
 *          |                              v                      |  |
 *          |                          connecting ----------------|--'
 *          |                              |       '-- a kept connection turns out closed: anew
 *          '----------- deadline ---------+-----------> ended
 * </pre>
 *
 * The loop's thread only, except {@link #granted}.
 */
final class DownstreamCall extends ConnectionCap.Waiter {
  private static final byte[] NOTHING = {};

  private final DownstreamClient client;
  private final DownstreamCallback callback;
  private final long askedNanos = System.nanoTime();
  private @Nullable ScheduledFuture<?> deadline;
  private long begunNanos;
  private boolean hasPlace;
  private boolean ended;

  /** What it connects or has asked through. */
  private @Nullable Channel channel;

  DownstreamCall(DownstreamClient client, DownstreamCallback callback) {
    this.client = client;
    this.callback = callback;
  }

  void start() {
    deadline =
        client
            .loop()
            .schedule(this::late, client.downstream().timeoutNanos(), TimeUnit.NANOSECONDS);
    if (client.downstream().cap().enter(this)) {
      begin();
    }
  }

  @Override
  protected void granted() {
    if (client.loop().inEventLoop()) {
      // As a task: the one that gives its place away has yet to be answered itself.
      client.loop().execute(this::begin);
      return;
    }
    try {
      client.loop().execute(this::begin);
    } catch (RejectedExecutionException e) {
      // The server has stopped.
      client.downstream().cap().leave();
    }
  }

  /** The whole answer came. */
  void answered(int status, byte[] body) {
    if (status == 200) {
      end(DownstreamOutcome.OK, body);
    } else {
      end(DownstreamOutcome.ERROR, NOTHING);
    }
  }

  /** The downstream had closed a kept connection before it answered anything: once more. */
  void stale() {
    if (!ended) {
      client.downstream().retries().inc();
      connect();
    }
  }

  void failed(DownstreamOutcome outcome) {
    end(outcome, NOTHING);
  }

  private void begin() {
    if (ended) {
      client.downstream().cap().leave();
      return;
    }
    hasPlace = true;
    begunNanos = System.nanoTime();
    DownstreamConnection kept = client.pollIdle();
    if (kept == null) {
      connect();
    } else {
      ask(kept);
    }
  }

  private void connect() {
    InetSocketAddress address = client.downstream().address().current();
    if (address.isUnresolved()) {
      failed(DownstreamOutcome.ERROR);
      return;
    }
    var connecting = client.connect(address);
    channel = connecting.channel();
    var _ =
        connecting.addListener(
            _ -> {
              if (client.loop().inEventLoop()) {
                tried(connecting);
              } else {
                // A channel that cannot be made, as without a file descriptor, is on no loop.
                client.loop().execute(() -> tried(connecting));
              }
            });
  }

  private void tried(ChannelFuture connecting) {
    if (connecting.isSuccess()) {
      connected(connecting.channel());
    } else {
      failed(
          connecting.cause() instanceof ConnectException failure
              ? DownstreamOutcome.ofConnect(failure)
              : DownstreamOutcome.ERROR);
    }
  }

  private void connected(Channel connected) {
    DownstreamConnection connection = connected.pipeline().get(DownstreamConnection.class);
    if (ended) {
      connection.close();
    } else {
      ask(connection);
    }
  }

  private void ask(DownstreamConnection connection) {
    channel = connection.channel();
    connection.ask(this);
  }

  private void late() {
    if (ended) {
      return;
    }
    Channel broken = channel;
    end(DownstreamOutcome.TIMEOUT, NOTHING);
    if (broken != null) {
      var _ = broken.close();
    }
  }

  private void end(DownstreamOutcome outcome, byte[] body) {
    if (ended) {
      return;
    }
    ended = true;
    channel = null;
    if (deadline != null) {
      var _ = deadline.cancel(false);
    }
    long now = System.nanoTime();
    if (hasPlace) {
      client.downstream().cap().leave();
      long unreadNanos =
          outcome == DownstreamOutcome.OK ? now - client.clock().readyNanos(begunNanos) : 0;
      client
          .downstream()
          .metrics()
          .ended(outcome, begunNanos - askedNanos, now - begunNanos, unreadNanos);
    } else {
      // If the place has just been granted, begin() is under way and leaves it.
      var _ = client.downstream().cap().giveUp(this);
      client.downstream().metrics().neverBegun(outcome, now - askedNanos);
    }
    callback.ended(outcome, body);
  }
}
