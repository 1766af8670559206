package lab.wire;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RequestHeadTest {
  private final RequestHead head = new RequestHead();

  @Test
  void aRequestLineNamesMethodPathAndQuery() throws Exception {
    Request request = read("GET /block?wait_ms=7 HTTP/1.1\r\nHost: lab\r\n\r\n");
    assertThat(request).isEqualTo(new Request("GET", "/block", "wait_ms=7", true, true));
    assertThat(read("PUT /block HTTP/1.1\r\n\r\n").method()).isEqualTo("PUT");
    assertThat(read("get /block HTTP/1.1\r\n\r\n").method()).isEqualTo("get");
  }

  @Test
  void pathsAreDecodedAndAbsoluteTargetsUnderstood() throws Exception {
    assertThat(read("GET /%68ealth HTTP/1.1\r\n\r\n").path()).isEqualTo("/health");
    assertThat(read("GET http://lab:8080/health HTTP/1.1\r\n\r\n").path()).isEqualTo("/health");
  }

  @Test
  void onlyHeadHasAnAnswerWithoutBody() throws Exception {
    assertThat(read("HEAD / HTTP/1.1\r\n\r\n").answerHasBody()).isFalse();
    assertThat(read("POST / HTTP/1.1\r\n\r\n").answerHasBody()).isTrue();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          HTTP/1.1 | Host: lab                  | true
          HTTP/1.1 | Connection: close          | false
          HTTP/1.1 | connection: Upgrade, CLOSE | false
          HTTP/1.1 | Connection: closed         | true
          HTTP/1.0 | Host: lab                  | false
          HTTP/1.0 | Connection: Keep-Alive     | true
          """)
  void whetherTheConnectionStays(String version, String header, boolean stays) throws Exception {
    Request request = read("GET / " + version + "\r\n" + header + "\r\n\r\n");
    assertThat(request.keepAlive()).isEqualTo(stays);
  }

  @Test
  void bodiesAreAnnouncedByLengthOrInChunks() throws Exception {
    var _ = read("PUT / HTTP/1.1\r\ncontent-length:  12 \r\nExpect: 100-continue\r\n\r\n");
    assertThat(head.fields().contentLength()).isEqualTo(12);
    assertThat(head.expectsContinue()).isTrue();
    var _ = read("PUT / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n");
    assertThat(head.fields().chunked()).isTrue();
    assertThat(head.fields().contentLength()).isEqualTo(-1);
    var _ = read("GET / HTTP/1.1\n\n");
    assertThat(head.fields().chunked()).isFalse();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "GET\r\n\r\n",
        "GET /\r\n\r\n",
        "GET  / HTTP/1.1\r\n\r\n",
        "GET / HTTP/2.0\r\n\r\n",
        "GET / http/1.1\r\nHost: lab\r\n\r\n",
        "GET /#a HTTP/1.1\r\nHost: lab\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: lab\r\nHost: lab\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: lab\r\nHost: lab\r\n\r\n",
        "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: lab/\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: lab:80a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: lab\r\nna(me: a\r\n\r\n",
        "G(x / HTTP/1.1\r\n\r\n",
        "G\u00e9T / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1 x\r\n\r\n",
        " GET / HTTP/1.1\r\n\r\n",
        "GET /[ HTTP/1.1\r\n\r\n",
        "GET health HTTP/1.1\r\n\r\n",
        "GET mailto:lab HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\n: no name\r\n\r\n",
        "GET / HTTP/1.1\r\nName : lab\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\u0001b\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 9999999999999999999\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
        "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
      })
  void malformedHeadsAreRefused(String text) {
    assertThatThrownBy(() -> read(text)).isInstanceOf(MalformedException.class);
  }

  @Test
  void onlyTheOldProtocolNeedsNoHost() throws Exception {
    var _ = readAsIs("GET / HTTP/1.0\r\n\r\n");
    var _ = readAsIs("GET / HTTP/1.1\r\nHost:\r\n\r\n");
    var _ = readAsIs("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n");
    assertThatThrownBy(() -> readAsIs("GET / HTTP/1.1\r\n\r\n"))
        .isInstanceOf(MalformedException.class);
  }

  @Test
  void theEndOfAHeadIsFoundHoweverItsLinesEnd() {
    assertThat(end("GET / HTTP/1.1\r\n\r\nmore")).isEqualTo(18);
    assertThat(end("GET / HTTP/1.1\n\nmore")).isEqualTo(16);
    assertThat(end("GET / HTTP/1.1\r\nA: b\r\n")).isEqualTo(-1);
    assertThat(end("GET / HTTP/1.1\r\nA: b\r\n\r")).isEqualTo(-1);
    assertThat(end("")).isEqualTo(-1);
  }

  /** Reads a head, with a Host if it has to have one. */
  private Request read(String text) throws MalformedException {
    int lineEnd = text.indexOf('\n') + 1;
    boolean add = text.contains("HTTP/1.1") && !text.contains("Host:");
    return readAsIs(
        add ? text.substring(0, lineEnd) + "Host: lab\n" + text.substring(lineEnd) : text);
  }

  private Request readAsIs(String text) throws MalformedException {
    byte[] bytes = text.getBytes(ISO_8859_1);
    assertThat(end(text)).isEqualTo(bytes.length);
    return head.read(bytes, 0);
  }

  private static int end(String text) {
    byte[] bytes = text.getBytes(ISO_8859_1);
    return HttpBytes.endOfHead(bytes, 0, bytes.length);
  }
}
