package lab.wire;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class AnswerReaderTest {
  private static final String COUNTED = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
  private static final String CHUNKED =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n";

  private final AnswerReader reader = new AnswerReader(new HeaderFields());

  @ParameterizedTest
  @ValueSource(strings = {COUNTED, CHUNKED})
  void anAnswerMayComeWholeOrByteByByte(String answer) throws Exception {
    assertThat(take(answer)).isTrue();
    assertWholeAndReusable();
    reader.forget();
    for (int i = 1; i < answer.length(); i++) {
      assertThat(take(answer.substring(i - 1, i))).isFalse();
      assertThat(reader.endsWithClose()).isFalse();
    }
    assertThat(take(answer.substring(answer.length() - 1))).isTrue();
    assertWholeAndReusable();
  }

  @Test
  void anAnswerWithoutALengthEndsWithTheConnection() throws Exception {
    assertThat(take("HTTP/1.1 200 OK\r\n\r\n{")).isFalse();
    assertThat(take("}")).isFalse();
    assertThat(reader.endsWithClose()).isTrue();
    assertThat(reader.body()).asString(ISO_8859_1).isEqualTo("{}");
    assertThat(reader.isConnectionReusable()).isFalse();
  }

  @Test
  void aBodyThatComesInManyPartsIsCopiedAFewTimes() throws Exception {
    take("HTTP/1.1 200 OK\r\n\r\n");
    for (int i = 0; i < 10_000; i++) {
      take("x");
    }
    long before = allocatedBytes();
    for (int i = 0; i < 10_000; i++) {
      take("x");
    }
    // The room doubles twice at most, and the text of each part takes some bytes as well.
    assertThat(allocatedBytes() - before).isLessThan(10_000_000);
    assertThat(reader.body()).hasSize(20_000);
  }

  @Test
  void aFailureWithoutALengthIsWholeAtOnce() throws Exception {
    assertThat(take("HTTP/1.1 503 Busy\r\n\r\nnobody reads this")).isTrue();
    assertThat(reader.status()).isEqualTo(503);
    assertThat(reader.body()).isEmpty();
    assertThat(reader.isConnectionReusable()).isFalse();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          Connection: close                       | false
          Connection: x, Close                    | false
          Connection: keep-alive                  | true
          """)
  void aConnectionIsUsedAgainUnlessToldOtherwise(String field, boolean again) throws Exception {
    assertThat(take(COUNTED.replace("\r\n\r\n", "\r\n" + field + "\r\n\r\n"))).isTrue();
    assertThat(reader.isConnectionReusable()).isEqualTo(again);
  }

  @ParameterizedTest
  @ValueSource(strings = {COUNTED, CHUNKED})
  void bytesAfterAnAnswerMakeTheConnectionUseless(String answer) throws Exception {
    assertThat(take(answer + "H")).isTrue();
    assertThat(reader.body()).asString(ISO_8859_1).isEqualTo("{}");
    assertThat(reader.isConnectionReusable()).isFalse();
  }

  @ParameterizedTest
  @ValueSource(strings = {COUNTED, CHUNKED})
  void informationalAnswersArePassedOver(String answer) throws Exception {
    String hint = "HTTP/1.1 103 Early Hints\r\nContent-Length: 2\r\n\r\n";
    String all = hint.repeat(AnswerReader.MAX_INFORMATIONAL) + answer;
    assertThat(take(all)).isTrue();
    assertWholeAndReusable();
    reader.forget();
    for (int i = 1; i < all.length(); i++) {
      assertThat(take(all.substring(i - 1, i))).isFalse();
    }
    assertThat(take(all.substring(all.length() - 1))).isTrue();
    assertWholeAndReusable();
    reader.forget();
    assertThatThrownBy(() -> take(hint + all)).isInstanceOf(MalformedException.class);
  }

  @ParameterizedTest
  @ValueSource(strings = {"204 No Content", "304 Not Modified"})
  void whatNeverHasABodyIsWholeAtOnce(String status) throws Exception {
    String answer = "HTTP/1.1 " + status + "\r\nContent-Length: 9\r\n\r\n";
    assertThat(take(answer)).isTrue();
    assertThat(reader.body()).isEmpty();
    assertThat(reader.isConnectionReusable()).isTrue();
    reader.forget();
    assertThat(take(answer + "123456789")).isTrue();
    assertThat(reader.isConnectionReusable()).isFalse();
  }

  @ParameterizedTest
  @ValueSource(strings = {"200", "200 ", "200 O K", "200 200"})
  void theReasonMayBeAnything(String status) throws Exception {
    assertThat(take(COUNTED.replace("200 OK", status))).isTrue();
    assertWholeAndReusable();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 99 OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: lab\r\n\r\n",
        "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 ABC OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
      })
  void whatIsNoAnswerIsRefused(String answer) {
    assertThatThrownBy(() -> take(answer)).isInstanceOf(MalformedException.class);
  }

  @Test
  void aHeadWithoutEndIsRefused() {
    String line = "Filler: " + "x".repeat(1_000) + "\r\n";
    assertThatThrownBy(
            () -> {
              take("HTTP/1.1 200 OK\r\n");
              for (int i = 0; i < 20; i++) {
                take(line);
              }
            })
        .isInstanceOf(MalformedException.class);
  }

  private void assertWholeAndReusable() {
    assertThat(reader.status()).isEqualTo(200);
    assertThat(reader.body()).asString(ISO_8859_1).isEqualTo("{}");
    assertThat(reader.isConnectionReusable()).isTrue();
  }

  private static long allocatedBytes() {
    return ((ThreadMXBean) ManagementFactory.getThreadMXBean()).getCurrentThreadAllocatedBytes();
  }

  private boolean take(String text) throws MalformedException {
    byte[] bytes = text.getBytes(ISO_8859_1);
    return reader.take(bytes, 0, bytes.length);
  }
}
