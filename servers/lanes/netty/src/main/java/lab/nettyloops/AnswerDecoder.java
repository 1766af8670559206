package lab.nettyloops;

import io.netty.handler.codec.http.HttpDecoderConfig;
import io.netty.handler.codec.http.HttpResponseDecoder;

/**
 * Netty's decoder, which tells whether there is more than it has decoded. The loop's thread only.
 */
final class AnswerDecoder extends HttpResponseDecoder {
  AnswerDecoder(HttpDecoderConfig limits) {
    super(limits);
  }

  boolean hasInput() {
    return actualReadableBytes() > 0;
  }
}
