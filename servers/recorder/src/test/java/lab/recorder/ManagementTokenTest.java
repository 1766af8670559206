package lab.recorder;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ManagementTokenTest {
  /** {@code printf abc | sha256sum}. */
  private static final String SUM =
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

  @Test
  void aServerKnowsItsTokenByItsSum() {
    ManagementToken token =
        ManagementToken.of("netty", "netty-virtual=1,netty=" + SUM + ",vertx=2");
    assertThat(token.is("abc")).isTrue();
    assertThat(token.is(SUM)).isFalse();
    assertThat(token.is("abd")).isFalse();
    assertThat(token.is("")).isFalse();
    assertThat(token.is(null)).isFalse();
  }

  @ParameterizedTest
  @ValueSource(strings = {"", ",", "netty", "netty=", "netty-virtual=" + SUM, "=" + SUM, "netty=1"})
  void withoutItsSumNobodyHasTheToken(String sums) {
    ManagementToken token = ManagementToken.of("netty", sums);
    assertThat(token.is("abc")).isFalse();
    assertThat(token.is("")).isFalse();
  }
}
