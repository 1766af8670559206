package lab.nettyloops;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoop;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.http.HttpDecoderConfig;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import lab.netty.Loop;
import lab.observe.SelectorClock;
import lab.wire.AnswerReader;
import lab.work.DownstreamLimits;
import lab.work.nonblocking.LoopServices.DownstreamCallback;
import org.jspecify.annotations.Nullable;

/**
 * Calls the downstream from one event loop, over kept-alive connections of that loop's own, most
 * recently used first. The loop's thread only.
 */
final class DownstreamClient {
  private final Loop loop;
  private final Downstream downstream;
  private final Bootstrap bootstrap;

  /** Most recently used first; closed ones are left in and passed over. */
  private final ArrayDeque<DownstreamConnection> idle = new ArrayDeque<>();

  DownstreamClient(Loop loop, Downstream downstream) {
    this.loop = loop;
    this.downstream = downstream;
    HttpDecoderConfig limits =
        new HttpDecoderConfig().setMaxHeaderSize(AnswerReader.MAX_HEAD_BYTES);
    bootstrap =
        new Bootstrap()
            .group(loop.executor())
            .channel(NioSocketChannel.class)
            .option(ChannelOption.TCP_NODELAY, true)
            // The call's own deadline holds for connecting too.
            .option(ChannelOption.CONNECT_TIMEOUT_MILLIS, 0)
            .handler(
                new ChannelInitializer<SocketChannel>() {
                  @Override
                  protected void initChannel(SocketChannel channel) {
                    AnswerDecoder decoder = new AnswerDecoder(limits);
                    channel
                        .pipeline()
                        .addLast(decoder)
                        .addLast(new DownstreamConnection(DownstreamClient.this, channel, decoder));
                  }
                });
    long pruneNanos = DownstreamLimits.betweenLooks(downstream.keepIdle()).toNanos();
    loop.every(pruneNanos, this::prune);
  }

  /** Begins a call; the callback comes later, or at once. */
  void call(DownstreamCallback callback) {
    new DownstreamCall(this, callback).start();
  }

  Downstream downstream() {
    return downstream;
  }

  EventLoop loop() {
    return loop.executor();
  }

  /** Of the loop's selector. */
  SelectorClock clock() {
    return loop.clock();
  }

  @Nullable DownstreamConnection pollIdle() {
    DownstreamConnection kept = idle.pollFirst();
    while (kept != null && !kept.isOpen()) {
      kept = idle.pollFirst();
    }
    return kept;
  }

  void keep(DownstreamConnection connection) {
    idle.addFirst(connection);
  }

  /** The channel's last handler is its {@link DownstreamConnection}. */
  ChannelFuture connect(InetSocketAddress address) {
    return bootstrap.connect(address);
  }

  private void prune() {
    long now = System.nanoTime();
    DownstreamConnection oldest = idle.peekLast();
    long most = downstream.keepIdle().toNanos();
    while (oldest != null && (!oldest.isOpen() || now - oldest.idleSince() > most)) {
      idle.removeLast();
      oldest.close();
      oldest = idle.peekLast();
    }
  }
}
