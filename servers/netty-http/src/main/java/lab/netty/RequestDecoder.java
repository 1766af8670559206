package lab.netty;

import io.netty.handler.codec.http.HttpDecoderConfig;
import io.netty.handler.codec.http.HttpMessage;
import io.netty.handler.codec.http.HttpRequestDecoder;

/** Netty's decoder, which takes {@code http/1.1} and {@code HTTP/1.10} for versions: not here. */
final class RequestDecoder extends HttpRequestDecoder {
  RequestDecoder(HttpDecoderConfig limits) {
    super(limits);
  }

  /** What is thrown here makes a message of which {@code decoderResult} tells the failure. */
  @Override
  protected HttpMessage createMessage(String[] requestLine) throws Exception {
    String version = requestLine[2];
    if (!version.equals("HTTP/1.1") && !version.equals("HTTP/1.0")) {
      throw new IllegalArgumentException("neither HTTP/1.1 nor HTTP/1.0");
    }
    return super.createMessage(requestLine);
  }
}
