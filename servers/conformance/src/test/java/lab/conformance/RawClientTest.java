package lab.conformance;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import org.junit.jupiter.api.Test;

class RawClientTest {
  private static final String CHUNKED =
      """
      HTTP/1.1 200 OK\r
      Transfer-Encoding: chunked\r
      \r
      5\r
      HTTP/\r
      3;a=b\r
      1.1\r
      0\r
      A: b\r
      \r
      """;
  private static final String COUNTED = "HTTP/1.1 405 No\r\nContent-Length: 8\r\n\r\nHTTP/1.1";

  @Test
  void anAnswerEndsWhereItsBodyDoes() throws Exception {
    assertThat(rest(CHUNKED + COUNTED + CHUNKED)).isEqualTo("200 405 200 closed");
    assertThat(rest(COUNTED + CHUNKED.substring(0, CHUNKED.length() - 2)))
        .isEqualTo("405 cut closed");
  }

  @Test
  void aBodyInChunksIsPutTogether() throws Exception {
    try (ServerSocket listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        RawClient client = new RawClient(listener.getLocalPort());
        Socket server = listener.accept()) {
      server.getOutputStream().write(CHUNKED.getBytes(US_ASCII));
      assertThat(client.read().body()).isEqualTo("HTTP/1.1");
    }
  }

  private static String rest(String answers) throws Exception {
    try (ServerSocket listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        RawClient client = new RawClient(listener.getLocalPort())) {
      try (Socket server = listener.accept()) {
        server.getOutputStream().write(answers.getBytes(US_ASCII));
      }
      return client.rest();
    }
  }
}
