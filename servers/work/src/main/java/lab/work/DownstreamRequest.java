package lab.work;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.net.URI;

/** The request that every call sends, whole, to a host's name or address. Never changed. */
@SuppressWarnings("ArrayRecordComponent") // Written to sockets, never compared.
public record DownstreamRequest(String host, int port, byte[] bytes) {
  /** A GET of this URL. */
  public static DownstreamRequest get(URI url) {
    String target =
        url.getRawQuery() == null ? url.getRawPath() : url.getRawPath() + "?" + url.getRawQuery();
    return new DownstreamRequest(
        url.getHost(),
        url.getPort() < 0 ? 80 : url.getPort(),
        "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\n\r\n"
            .formatted(target, url.getRawAuthority())
            .getBytes(ISO_8859_1));
  }
}
