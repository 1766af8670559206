package lab.contract.serving;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Instant;
import lab.contract.Answer;
import org.junit.jupiter.api.Test;

class AnswerHeadTest {
  private Instant now = Instant.parse("1994-11-06T08:49:37.900Z");
  private final AnswerHead heads = new AnswerHead("test", new HttpDate(() -> now));

  @Test
  void theUsualOnesAreMadeOnceASecondAndSayWhen() {
    byte[] first = head(2, "");
    assertThat(new String(first, ISO_8859_1).lines())
        .containsExactly(
            "HTTP/1.1 200 OK",
            "Content-Type: application/json",
            "Lab-Model: test",
            "Date: Sun, 06 Nov 1994 08:49:37 GMT",
            "Content-Length: 2",
            "");
    now = now.plusMillis(99);
    assertThat(head(2, "")).isSameAs(first);
    now = now.plusMillis(1);
    assertThat(new String(head(2, ""), ISO_8859_1)).contains("Date: Sun, 06 Nov 1994 08:49:38 GMT");
  }

  @Test
  void theOthersSaySoToo() {
    assertThat(new String(head(5_000, "close"), ISO_8859_1))
        .contains("Date: Sun, 06 Nov 1994 08:49:37 GMT", "Connection: close");
  }

  private byte[] head(int length, String connection) {
    return heads.of(Answer.ok(new byte[length]), connection);
  }
}
