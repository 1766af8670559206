package lab.wire;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Instant;
import org.junit.jupiter.api.Test;

class AnswerWriterTest {
  private static final Request GET = new Request("GET", "/", null, true, true);

  private Instant now = Instant.parse("1994-11-06T08:49:37.900Z");
  private final AnswerWriter writer = new AnswerWriter("Lab-Model: test", new HttpDate(() -> now));

  @Test
  void anAnswerHasItsHeadItsDateAndItsBody() {
    assertThat(answer(GET, 200, true).lines())
        .containsExactly(
            "HTTP/1.1 200 OK",
            "Content-Type: text/plain",
            "Lab-Model: test",
            "Date: Sun, 06 Nov 1994 08:49:37 GMT",
            "Content-Length: 2",
            "",
            "ok");
    now = now.plusMillis(100);
    assertThat(answer(GET, 200, true)).contains("Date: Sun, 06 Nov 1994 08:49:38 GMT");
  }

  @Test
  void onlyTheOldProtocolIsToldThatTheConnectionStays() {
    Request old = new Request("GET", "/", null, false, true);
    assertThat(answer(GET, 200, true)).doesNotContain("Connection");
    assertThat(answer(old, 200, true)).contains("Connection: keep-alive\r\n\r\n");
    assertThat(answer(GET, 200, false)).contains("Connection: close\r\n\r\n");
  }

  @Test
  void theAnswerToHeadEndsWithItsHead() {
    Request head = new Request("HEAD", "/", null, true, true);
    assertThat(answer(head, 405, true))
        .contains("Allow: GET\r\n", "Content-Length: 2\r\n")
        .endsWith("\r\n\r\n");
  }

  @Test
  void aRefusalIsTheLastAnswer() {
    byte[] refusal = writer.refusal(431, "text/plain", new byte[0]);
    assertThat(new String(refusal, ISO_8859_1))
        .startsWith("HTTP/1.1 431 Request Header Fields Too Large\r\n")
        .contains("Connection: close\r\n");
  }

  @Test
  void aStatusWithoutAReasonIsWrittenToo() {
    assertThat(answer(GET, 418, true)).startsWith("HTTP/1.1 418 Unknown\r\n");
  }

  private String answer(Request to, int status, boolean stays) {
    byte[] body = "ok".getBytes(ISO_8859_1);
    return new String(writer.answer(to, status, "text/plain", body, stays), ISO_8859_1);
  }
}
