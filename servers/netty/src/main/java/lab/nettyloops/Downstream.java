package lab.nettyloops;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.net.URI;
import lab.contract.DownstreamMetrics;
import lab.contract.DownstreamTimeout;
import lab.contract.ModelContext;
import lab.contract.Settings;
import lab.contract.nonblocking.ConnectionCap;

/** What the loops' clients of the downstream have in common. Any thread. */
final class Downstream {
  private final DownstreamAddress address;
  private final ByteBuf request;
  private final DownstreamMetrics metrics;
  private final ConnectionCap cap;
  private final DownstreamTimeout timeout;

  Downstream(ModelContext context) {
    Settings settings = context.settings();
    URI url = settings.downstreamUrl();
    address = new DownstreamAddress(url.getHost(), url.getPort() < 0 ? 80 : url.getPort());
    String target =
        url.getRawQuery() == null ? url.getRawPath() : url.getRawPath() + "?" + url.getRawQuery();
    byte[] text =
        "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\n\r\n"
            .formatted(target, url.getRawAuthority())
            .getBytes(ISO_8859_1);
    // Direct, as the socket wants it: encoded once, written by every call.
    request =
        Unpooled.unreleasableBuffer(
            Unpooled.directBuffer(text.length).writeBytes(text).asReadOnly());
    metrics = context.downstream();
    cap = new ConnectionCap(settings.downstreamConnections());
    timeout = DownstreamTimeout.publish(context, cap, cap::resize);
  }

  DownstreamAddress address() {
    return address;
  }

  /** The request's bytes, to be written once. */
  ByteBuf request() {
    return request.duplicate();
  }

  DownstreamMetrics metrics() {
    return metrics;
  }

  ConnectionCap cap() {
    return cap;
  }

  /** The deadline of a call that begins now. */
  int timeoutMs() {
    return timeout.ms();
  }
}
