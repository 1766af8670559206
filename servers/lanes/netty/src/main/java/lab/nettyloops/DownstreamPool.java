package lab.nettyloops;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.socket.SocketChannel;
import io.netty.util.concurrent.ScheduledFuture;
import io.prometheus.metrics.core.metrics.Counter;
import java.net.ConnectException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import lab.netty.Loop;
import lab.observe.DownstreamMetrics;
import lab.spec.DownstreamOutcome;
import lab.work.ConnectionCap;
import lab.work.DownstreamAddress;
import lab.work.DownstreamLimits;
import lab.work.nonblocking.LoopServices.DownstreamCallback;
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
final class DownstreamPool {
  private static final byte[] NOTHING = {};

  private final Loop loop;
  private final DownstreamLimits limits;
  private final DownstreamAddress address;
  private final DownstreamMetrics metrics;
  private final Counter retries;
  private final ByteBuf request;
  private final Bootstrap bootstrap;

  /** Last in, first out; those closed by the downstream meanwhile are dropped when met. */
  private final ArrayDeque<DownstreamConnection> idle = new ArrayDeque<>();

  DownstreamPool(
      Loop loop,
      DownstreamLimits limits,
      DownstreamAddress address,
      byte[] request,
      DownstreamMetrics metrics) {
    this.loop = loop;
    this.limits = limits;
    this.address = address;
    this.metrics = metrics;
    this.retries = metrics.retries();
    // Direct, as the socket wants it: encoded once, written by every call.
    ByteBuffer direct = ByteBuffer.allocateDirect(request.length).put(request).flip();
    this.request = Unpooled.unreleasableBuffer(Unpooled.wrappedBuffer(direct));
    this.bootstrap =
        new Bootstrap()
            .group(loop)
            .channel(loop.socketType())
            .disableResolver()
            .option(ChannelOption.TCP_NODELAY, true)
            // The call's own deadline holds for connecting too.
            .option(ChannelOption.CONNECT_TIMEOUT_MILLIS, 0)
            .handler(
                new ChannelInitializer<SocketChannel>() {
                  @Override
                  protected void initChannel(SocketChannel channel) {
                    DownstreamConnection.use(DownstreamPool.this, channel);
                  }
                });
    loop.every(
        DownstreamLimits.betweenLooks(limits.keepIdle()).toNanos(),
        () -> closeIdle(System.nanoTime()));
  }

  /** Calls the downstream; one deadline holds for all of it. */
  void call(DownstreamCallback callback) {
    new Call(callback).start();
  }

  /** The request's bytes, to be written once. */
  ByteBuf request() {
    return request.duplicate();
  }

  Loop loop() {
    return loop;
  }

  /** Keeps a connection for the next call. */
  void keep(DownstreamConnection connection) {
    idle.addFirst(connection);
  }

  private @Nullable DownstreamConnection pollIdle() {
    DownstreamConnection kept = idle.pollFirst();
    while (kept != null && !kept.isOpen()) {
      kept = idle.pollFirst();
    }
    return kept;
  }

  /** Closes what nobody has used for long. */
  private void closeIdle(long nowNanos) {
    long most = limits.keepIdle().toNanos();
    DownstreamConnection oldest = idle.peekLast();
    while (oldest != null && (!oldest.isOpen() || nowNanos - oldest.idleSinceNanos() > most)) {
      idle.removeLast();
      oldest.close();
      oldest = idle.peekLast();
    }
  }

  /** One call, from asking to its end. */
  final class Call extends ConnectionCap.Waiter {
    private final DownstreamCallback callback;
    private final long askedNanos = System.nanoTime();
    private @Nullable ScheduledFuture<?> deadline;
    private long begunNanos;
    private boolean hasPlace;
    private boolean ended;

    /** What it connects or has asked through. */
    private @Nullable Channel channel;

    private Call(DownstreamCallback callback) {
      this.callback = callback;
    }

    private void start() {
      deadline = loop.schedule(this::expire, limits.timeoutNanos(), TimeUnit.NANOSECONDS);
      if (limits.cap().enter(this)) {
        begin();
      }
    }

    /** As a task, on the loop too: the call that gives its place away is to be answered first. */
    @Override
    protected void granted() {
      try {
        loop.execute(this::begin);
      } catch (RejectedExecutionException e) {
        // The server has stopped.
        limits.cap().leave();
      }
    }

    private void begin() {
      if (ended) {
        // Its deadline passed after the place was granted.
        limits.cap().leave();
        return;
      }
      hasPlace = true;
      begunNanos = System.nanoTime();
      DownstreamConnection kept = pollIdle();
      if (kept == null) {
        connect();
      } else {
        ask(kept);
      }
    }

    private void connect() {
      ChannelFuture connecting = bootstrap.connect(address.current());
      channel = connecting.channel();
      var _ =
          connecting.addListener(
              _ -> {
                if (loop.inEventLoop()) {
                  connected(connecting);
                } else {
                  // A channel that cannot be made, as without a file descriptor, is on no loop.
                  loop.execute(() -> connected(connecting));
                }
              });
    }

    private void connected(ChannelFuture connecting) {
      if (connecting.cause() != null) {
        failed(
            connecting.cause() instanceof ConnectException failure
                ? DownstreamOutcome.ofConnect(failure)
                : DownstreamOutcome.ERROR);
      } else if (ended) {
        var _ = connecting.channel().close();
      } else {
        ask(connecting.channel().pipeline().get(DownstreamConnection.class));
      }
    }

    private void ask(DownstreamConnection connection) {
      channel = connection.channel();
      connection.ask(this);
    }

    /** The answer is complete. */
    void answered(int status, byte[] body) {
      end(
          status == 200 ? DownstreamOutcome.OK : DownstreamOutcome.ERROR,
          status == 200 ? body : NOTHING);
    }

    /** Its connection is lost, or was never made. */
    void failed(DownstreamOutcome outcome) {
      end(outcome, NOTHING);
    }

    /** The downstream had closed a kept connection before it could answer: once more, on a new. */
    void stale() {
      if (!ended) {
        retries.inc();
        connect();
      }
    }

    private void expire() {
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
        limits.cap().leave();
        long unreadNanos =
            outcome == DownstreamOutcome.OK ? now - loop.clock().readyNanos(begunNanos) : 0;
        metrics.ended(outcome, begunNanos - askedNanos, now - begunNanos, unreadNanos);
      } else {
        // If its place has just been granted, begin() is under way and leaves it.
        var _ = limits.cap().giveUp(this);
        metrics.neverBegun(outcome, now - askedNanos);
      }
      callback.ended(outcome, body);
    }
  }
}
