package lab.nettyloops;

import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.codec.http.HttpContent;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpResponse;
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
import org.jspecify.annotations.Nullable;

/**
 * One kept-alive connection to the downstream, with one call at a time. Its loop's thread only.
 *
 * <pre>
 *   idle --ask--> asked --head--> body --end--> idle
 *                   |               '-- close announced, or no length --> closed
 *                   '-- closed before anything came: stale if it was used before
 * </pre>
 */
final class DownstreamConnection extends ChannelInboundHandlerAdapter {
  private static final Logger LOG = System.getLogger(DownstreamConnection.class.getName());

  private final DownstreamClient client;
  private final Channel channel;
  private final AnswerDecoder decoder;
  private @Nullable DownstreamCall call;
  private boolean usedBefore;
  private boolean answering;
  private boolean reusable;
  private int informational;
  private int status;
  private final BodyBuffer body = new BodyBuffer(AnswerReader.MAX_BODY_BYTES);
  private long idleSinceNanos;

  DownstreamConnection(DownstreamClient client, Channel channel, AnswerDecoder decoder) {
    this.client = client;
    this.channel = channel;
    this.decoder = decoder;
  }

  Channel channel() {
    return channel;
  }

  boolean isOpen() {
    return channel.isActive();
  }

  long idleSince() {
    return idleSinceNanos;
  }

  void close() {
    var _ = channel.close();
  }

  /** Sends the request; how it ends is told to the call. */
  void ask(DownstreamCall caller) {
    call = caller;
    answering = false;
    informational = 0;
    // A write that fails has found the connection closed: the channel's end tells the call.
    var _ =
        channel
            .writeAndFlush(client.downstream().request())
            .addListener(ChannelFutureListener.CLOSE_ON_FAILURE);
  }

  @Override
  public void channelRead(ChannelHandlerContext ctx, Object message) {
    try {
      if (call == null) {
        // Nobody asked, or the caller's deadline has passed.
        close();
      } else if (((HttpObject) message).decoderResult().isFailure()) {
        fail();
      } else {
        receive(message);
      }
    } finally {
      var _ = ReferenceCountUtil.release(message);
    }
  }

  @Override
  public void channelInactive(ChannelHandlerContext ctx) {
    DownstreamCall caller = call;
    call = null;
    if (caller == null) {
      return;
    }
    if (usedBefore && !answering) {
      caller.stale();
    } else {
      caller.failed(DownstreamOutcome.ERROR);
    }
  }

  @Override
  public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
    if (!(cause instanceof IOException)) {
      LOG.log(Level.ERROR, "a bug: a downstream connection failed", cause);
    }
    close();
  }

  private void receive(Object message) {
    if (message instanceof HttpResponse response) {
      answering = true;
      status = response.status().code();
      reusable =
          HttpUtil.isKeepAlive(response)
              && (HttpUtil.isContentLengthSet(response)
                  || HttpUtil.isTransferEncodingChunked(response));
      if (!response.protocolVersion().equals(HttpVersion.HTTP_1_1) || !isAnswer()) {
        fail();
        return;
      }
    }
    if (message instanceof HttpContent content && status >= 200) {
      try {
        append(content.content());
      } catch (MalformedException e) {
        fail();
        return;
      }
      if (content instanceof LastHttpContent) {
        end();
      }
    }
  }

  /** Informational answers are passed over, with their empty body: the answer itself follows. */
  private boolean isAnswer() {
    if (status >= 200) {
      return status < 1000;
    }
    informational++;
    return status >= 100 && status != 101 && informational <= AnswerReader.MAX_INFORMATIONAL;
  }

  private void append(ByteBuf bytes) throws MalformedException {
    int count = bytes.readableBytes();
    int at = body.extend(count);
    bytes.readBytes(body.array(), at, count);
  }

  private void end() {
    DownstreamCall caller = call;
    call = null;
    byte[] whole = body.bytes();
    body.clear();
    usedBefore = true;
    // Bytes that nobody asked for: this answer is whole, but none after it can be trusted.
    if (reusable && !decoder.hasInput()) {
      idleSinceNanos = System.nanoTime();
      client.keep(this);
    } else {
      close();
    }
    if (caller != null) {
      caller.answered(status, whole);
    }
  }

  private void fail() {
    DownstreamCall caller = call;
    call = null;
    body.clear();
    close();
    if (caller != null) {
      caller.failed(DownstreamOutcome.ERROR);
    }
  }
}
