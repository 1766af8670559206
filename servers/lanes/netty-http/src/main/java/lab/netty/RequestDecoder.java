package lab.netty;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http.HttpDecoderConfig;
import io.netty.handler.codec.http.HttpMessage;
import io.netty.handler.codec.http.HttpRequestDecoder;
import io.netty.handler.codec.http.LastHttpContent;
import java.util.List;

/** Netty's decoder, for exact versions only; it knows if a request has begun. Loop only. */
final class RequestDecoder extends HttpRequestDecoder {
  private static final HttpDecoderConfig LIMITS =
      new HttpDecoderConfig().setMaxInitialLineLength(32 << 10).setMaxHeaderSize(32 << 10);

  private boolean betweenRequests = true;

  RequestDecoder() {
    super(LIMITS);
  }

  /** True if there is input that has not become a whole request. */
  boolean hasInput() {
    return !betweenRequests || !isBlank(internalBuffer());
  }

  @Override
  protected void decode(ChannelHandlerContext ctx, ByteBuf input, List<Object> out)
      throws Exception {
    boolean blank = betweenRequests && isBlank(input);
    super.decode(ctx, input, out);
    betweenRequests = blank || (!out.isEmpty() && out.getLast() instanceof LastHttpContent);
  }

  /** Blank lines before a request are allowed (RFC 9112, 2.2), and begin none. */
  private static boolean isBlank(ByteBuf input) {
    return input.forEachByte(each -> each == '\r' || each == '\n') < 0;
  }

  /** What is thrown here makes a message whose {@code decoderResult} is the failure. */
  @Override
  protected HttpMessage createMessage(String[] requestLine) throws Exception {
    String version = requestLine[2];
    if (!version.equals("HTTP/1.1") && !version.equals("HTTP/1.0")) {
      throw new IllegalArgumentException("neither HTTP/1.1 nor HTTP/1.0");
    }
    return super.createMessage(requestLine);
  }
}
