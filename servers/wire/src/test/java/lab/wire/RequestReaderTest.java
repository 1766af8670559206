package lab.wire;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RequestReaderTest {
  private static final String HOST = " HTTP/1.1\r\nHost: lab\r\n";
  private static final String SEVERAL =
      "\r\n\r\nGET /a"
          + HOST
          + "\r\nPUT /b"
          + HOST
          + "Content-Length: 5\r\n\r\nhelloPUT /c"
          + HOST
          + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\r\nGET /d"
          + HOST
          + "\r\nGET /e";

  private final RequestReader reader = new RequestReader(new RequestHead());

  /** What it is given is overwritten afterwards, as a shared array is. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 7, 50, 1000})
  void requestsMayComeInAnyPieces(int size) throws Exception {
    List<String> paths = new ArrayList<>();
    byte[] all = SEVERAL.getBytes(ISO_8859_1);
    byte[] shared = new byte[size];
    for (int from = 0; from < all.length; from += size) {
      int count = Math.min(size, all.length - from);
      System.arraycopy(all, from, shared, 0, count);
      reader.add(shared, count);
      for (Request next = reader.next(); next != null; next = reader.next()) {
        paths.add(next.path());
      }
      reader.keep();
      Arrays.fill(shared, (byte) 'x');
    }
    assertThat(paths).containsExactly("/a", "/b", "/c", "/d");
    assertThat(reader.isIdle()).isFalse();
    assertThat(reader.unused()).isEqualTo("GET /e".length());
  }

  @Test
  void blankLinesBeginNoRequest() throws Exception {
    add("GET /" + HOST + "\r\n\r\n\n");
    assertThat(reader.isIdle()).isFalse();
    assertThat(reader.next()).isNotNull();
    assertThat(reader.isIdle()).isTrue();
    assertThat(reader.unused()).isZero();
  }

  @Test
  void aRequestWhoseBodyIsToComeIsBegunButNotThere() throws Exception {
    add("PUT /" + HOST + "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    assertThat(reader.next()).isNull();
    assertThat(reader.isIdle()).isFalse();
    assertThat(reader.takeContinue()).isTrue();
    assertThat(reader.takeContinue()).isFalse();
    add("ok");
    assertThat(reader.next()).isNotNull();
    assertThat(reader.isIdle()).isTrue();
  }

  @Test
  void aBodyThatIsNoneIsNotAskedFor() throws Exception {
    add("PUT /" + HOST + "Expect: 100-continue\r\n\r\n");
    assertThat(reader.next()).isNotNull();
    assertThat(reader.takeContinue()).isFalse();
  }

  @Test
  void aHeadMayBeAsLongAsTheLimitAndNoLonger() throws Exception {
    String begin = "GET /" + HOST + "A: ";
    String filler = "x".repeat(RequestReader.MAX_HEAD_BYTES - begin.length() - 4);
    add(begin + filler + "\r\n\r\n");
    assertThat(reader.next()).isNotNull();
    add(begin + filler + "x\r\n\r\n");
    assertThatThrownBy(reader::next)
        .isInstanceOfSatisfying(
            MalformedException.class, e -> assertThat(e.isHeadTooLong()).isTrue());
  }

  @Test
  void aHeadWithoutAnEndIsRefusedAtTheLimit() throws Exception {
    add("GET /" + HOST + "A: " + "x".repeat(RequestReader.MAX_HEAD_BYTES));
    assertThatThrownBy(reader::next).isInstanceOf(MalformedException.class);
  }

  private void add(String text) {
    byte[] bytes = text.getBytes(ISO_8859_1);
    reader.add(bytes, bytes.length);
  }
}
