package lab.nettyloops;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.socket.SocketChannel;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import lab.netty.Loop;
import lab.shell.ModelContext;
import lab.spec.DownstreamOutcome;
import lab.work.DownstreamAddress;
import lab.work.DownstreamLimits;
import lab.work.nonblocking.DownstreamPool;

/** The downstream's connections on one of Netty's loops. */
final class ChannelPool extends DownstreamPool {
  final Loop loop;
  private final ByteBuf request;
  private final Bootstrap bootstrap;

  ChannelPool(Loop loop, ModelContext context, DownstreamLimits limits, DownstreamAddress address) {
    super(context, loop, limits, address);
    this.loop = loop;
    // Direct, as the socket wants it: encoded once, written by every call.
    byte[] bytes = address.request();
    ByteBuffer direct = ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
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
                    DownstreamConnection.use(ChannelPool.this, channel);
                  }
                });
    loop.every(
        DownstreamLimits.betweenLooks(limits.keepIdle()).toNanos(),
        () -> closeIdle(System.nanoTime()));
  }

  ByteBuf request() {
    return request.duplicate();
  }

  @Override
  protected void connect(InetSocketAddress to, Call call) {
    ChannelFuture connecting = bootstrap.connect(to);
    call.uses(
        () -> {
          var _ = connecting.channel().close();
        });
    var _ =
        connecting.addListener(
            _ -> {
              if (loop.inEventLoop()) {
                connected(connecting, call);
              } else {
                // A channel that cannot be made, as without a file descriptor, is on no loop.
                loop.execute(() -> connected(connecting, call));
              }
            });
  }

  private static void connected(ChannelFuture connecting, Call call) {
    if (connecting.cause() != null) {
      call.failed(
          connecting.cause() instanceof ConnectException failure
              ? DownstreamOutcome.ofConnect(failure)
              : DownstreamOutcome.ERROR);
    } else if (call.hasEnded()) {
      var _ = connecting.channel().close();
    } else {
      call.ask(connecting.channel().pipeline().get(DownstreamConnection.class));
    }
  }
}
