package lab.nettyloops;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.socket.SocketChannel;
import io.netty.handler.codec.http.HttpContent;
import io.netty.handler.codec.http.HttpDecoderConfig;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseDecoder;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.util.ReferenceCountUtil;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import lab.spec.DownstreamOutcome;
import lab.wire.AnswerReader;
import lab.wire.BodyBuffer;
import lab.wire.MalformedException;
import lab.work.nonblocking.DownstreamPool;
import org.jspecify.annotations.Nullable;

/**
 * One kept-alive connection to the downstream, with one call at a time. Its loop's thread only.
 *
 * <pre>
 *   idle --ask--&gt; asked --head--&gt; body --end--&gt; idle
 *                   |               '-- close announced, or no length --&gt; closed
 *                   '-- closed before anything came: stale if it was used before
 * </pre>
 */
final class DownstreamConnection extends ChannelInboundHandlerAdapter
    implements DownstreamPool.Connection {
  /** Netty's decoder, which knows if there is more than it has decoded. */
  private static final class Decoder extends HttpResponseDecoder {
    private static final HttpDecoderConfig LIMITS =
        new HttpDecoderConfig().setMaxHeaderSize(AnswerReader.MAX_HEAD_BYTES);

    Decoder() {
      super(LIMITS);
    }

    boolean hasInput() {
      return actualReadableBytes() > 0;
    }
  }

  private static final Logger LOG = System.getLogger(DownstreamConnection.class.getName());

  private final ChannelPool pool;
  private final SocketChannel channel;
  private final Decoder decoder = new Decoder();
  private final BodyBuffer body = new BodyBuffer(AnswerReader.MAX_BODY_BYTES);
  private DownstreamPool.@Nullable Call call;
  private boolean usedBefore;
  private boolean answering;
  private boolean reusable;
  private int informational;
  private int status;
  private long idleSinceNanos;

  private DownstreamConnection(ChannelPool pool, SocketChannel channel) {
    this.pool = pool;
    this.channel = channel;
  }

  /** Uses a new channel, whose last handler it is then. */
  static void use(ChannelPool pool, SocketChannel channel) {
    DownstreamConnection connection = new DownstreamConnection(pool, channel);
    var _ = channel.pipeline().addLast(connection.decoder, connection);
  }

  @Override
  public boolean isOpen() {
    return channel.isActive();
  }

  @Override
  public long idleSinceNanos() {
    return idleSinceNanos;
  }

  @Override
  public void close() {
    var _ = channel.close();
  }

  @Override
  public void ask(DownstreamPool.Call caller) {
    call = caller;
    answering = false;
    informational = 0;
    // A write that fails has found the connection closed: the channel's end tells the call.
    var _ =
        channel.writeAndFlush(pool.request()).addListener(ChannelFutureListener.CLOSE_ON_FAILURE);
  }

  @Override
  public void channelRead(ChannelHandlerContext ctx, Object part) {
    pool.loop.probe().returned();
    try {
      receive((HttpObject) part);
    } catch (MalformedException e) {
      fail();
    } finally {
      var _ = ReferenceCountUtil.release(part);
    }
  }

  @Override
  public void channelInactive(ChannelHandlerContext ctx) {
    DownstreamPool.Call caller = call;
    if (caller != null && usedBefore && !answering) {
      call = null;
      caller.stale();
    } else {
      fail();
    }
  }

  @Override
  public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
    if (!(cause instanceof IOException)) {
      LOG.log(Level.ERROR, "a bug: a downstream connection failed", cause);
    }
    close();
  }

  private void receive(HttpObject part) throws MalformedException {
    if (call == null || part.decoderResult().isFailure()) {
      // Nobody asked, or the caller's deadline has passed; or it is no answer.
      throw new MalformedException("no answer");
    }
    if (part instanceof HttpResponse response) {
      receiveHead(response);
    }
    if (part instanceof HttpContent content && status >= 200) {
      ByteBuf bytes = content.content();
      int count = bytes.readableBytes();
      int at = body.extend(count);
      bytes.readBytes(body.array(), at, count);
      if (content instanceof LastHttpContent) {
        end();
      }
    }
  }

  private void receiveHead(HttpResponse response) throws MalformedException {
    answering = true;
    status = response.status().code();
    reusable =
        HttpUtil.isKeepAlive(response)
            && (HttpUtil.isContentLengthSet(response)
                || HttpUtil.isTransferEncodingChunked(response));
    // Informational answers are passed over, with their empty body: the answer itself follows.
    boolean isAnswer =
        status >= 200
            ? status < 1000
            : status >= 100 && status != 101 && ++informational <= AnswerReader.MAX_INFORMATIONAL;
    if (!isAnswer || !response.protocolVersion().equals(HttpVersion.HTTP_1_1)) {
      throw new MalformedException("no answer");
    }
  }

  private void end() {
    DownstreamPool.Call caller = call;
    call = null;
    byte[] whole = body.bytes();
    body.clear();
    usedBefore = true;
    // Bytes that nobody asked for: this answer is whole, but none after it can be trusted.
    if (reusable && !decoder.hasInput()) {
      idleSinceNanos = System.nanoTime();
      pool.keep(this);
    } else {
      close();
    }
    if (caller != null) {
      caller.answered(status, whole);
    }
  }

  /** Closes it; its call, if there is one, gets no answer. */
  private void fail() {
    DownstreamPool.Call caller = call;
    call = null;
    body.clear();
    close();
    if (caller != null) {
      caller.failed(DownstreamOutcome.ERROR);
    }
  }
}
