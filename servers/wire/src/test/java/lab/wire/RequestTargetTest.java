package lab.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RequestTargetTest {
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      nullValues = "null",
      textBlock =
          """
          /                             | /       | null
          /block?wait_ms=5              | /block  | wait_ms=5
          /block?                       | /block  | ''
          /?a=1?b                       | /       | a=1?b
          /%62lock?a=%62                | /block  | a=%62
          http://lab:8080/block?a=1     | /block  | a=1
          //lab/block                   | /block  | null
          *                             | *       | null
          """)
  void aTargetIsAPathAndPerhapsAQuery(String target, String path, String query) throws Exception {
    assertThat(RequestTarget.parse(target)).isEqualTo(new RequestTarget(path, query));
  }

  @ParameterizedTest
  @ValueSource(strings = {"/a b", "/%zz", "/{}", "http://", "/block#part", "block", "mailto:lab"})
  void whatIsNoTargetIsRefused(String target) {
    assertThatThrownBy(() -> RequestTarget.parse(target)).isInstanceOf(MalformedException.class);
  }
}
