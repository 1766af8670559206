package lab.wire;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ChunkedBodyTest {
  private static final String BODY =
      "4\r\nover\r\nA;note=1\r\n the hills\r\n0\r\nTrailer: x\r\n\r\n";

  @Test
  void chunksBecomeOneBodyAndWhatFollowsIsLeft() throws Exception {
    BodyBuffer body = new BodyBuffer(100);
    ChunkedBody chunks = new ChunkedBody(body);
    byte[] bytes = (BODY + "GET").getBytes(US_ASCII);
    assertThat(chunks.take(bytes, 0, bytes.length)).isEqualTo(BODY.length());
    assertThat(chunks.done()).isTrue();
    assertThat(body.bytes()).asString(US_ASCII).isEqualTo("over the hills");
  }

  @Test
  void theyMayComeByteByByte() throws Exception {
    BodyBuffer body = new BodyBuffer(100);
    ChunkedBody chunks = new ChunkedBody(body);
    byte[] bytes = BODY.getBytes(US_ASCII);
    for (int i = 0; i < bytes.length; i++) {
      assertThat(chunks.done()).isFalse();
      assertThat(chunks.take(bytes, i, i + 1)).isEqualTo(i + 1);
    }
    assertThat(chunks.done()).isTrue();
    assertThat(body.bytes()).asString(US_ASCII).isEqualTo("over the hills");
  }

  @Test
  void whatIsOnlyPassedOverMayBeOfAnyLength() throws Exception {
    ChunkedBody chunks = new ChunkedBody(null);
    byte[] bytes = BODY.getBytes(US_ASCII);
    assertThat(chunks.take(bytes, 0, bytes.length)).isEqualTo(bytes.length);
    assertThat(chunks.done()).isTrue();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "\r\n",
        "x\r\n",
        ";note\r\n",
        "123456789\r\n",
        "2\r\nabc",
        "1\r2\r\nab\r\n0\r\n\r\n",
        "1\r\na\r\n0\r\nTrailer: a\rb\r\n\r\n",
        "5\r\nabcde\r\n6\r\nfghijk\r\n0\r\n\r\n"
      })
  void malformedOrTooLongOnesAreRefused(String text) {
    ChunkedBody chunks = new ChunkedBody(new BodyBuffer(10));
    byte[] bytes = text.getBytes(US_ASCII);
    assertThatThrownBy(() -> chunks.take(bytes, 0, bytes.length))
        .isInstanceOf(MalformedException.class);
  }
}
