package lab.contract.downstream;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import lab.contract.http.HeaderFields;
import lab.contract.http.MalformedException;
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
  @ValueSource(
      strings = {
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

  private boolean take(String text) throws MalformedException {
    byte[] bytes = text.getBytes(ISO_8859_1);
    return reader.take(bytes, 0, bytes.length);
  }
}
