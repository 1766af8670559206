package lab.spec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.URI;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SettingsTest {
  @Test
  void anEmptyEnvironmentGivesTheDefaults() throws Exception {
    Settings settings = Settings.fromEnvironment(Map.of("PATH", "/bin", "LAB_JVM_FLAGS", "-Xmx1g"));
    assertThat(settings.httpPort()).isEqualTo(8080);
    assertThat(settings.managementPort()).isEqualTo(8081);
    assertThat(settings.backlog()).isEqualTo(4096);
    assertThat(settings.poolSize()).isEqualTo(200);
    assertThat(settings.queueBound()).isZero();
    assertThat(settings.downstreamUrl()).isEqualTo(URI.create("http://toxiproxy:8666/"));
    assertThat(settings.downstreamConnections()).isEqualTo(20_000);
    assertThat(settings.downstreamTimeout()).isEqualTo(Duration.ofSeconds(10));
    assertThat(settings.downstreamKeepIdle()).isEqualTo(Duration.ofSeconds(60));
  }

  @Test
  void theEnvironmentWins() throws Exception {
    Settings settings =
        Settings.fromEnvironment(
            Map.of("LAB_POOL_SIZE", "7", "LAB_NETTY_TRANSPORT", "epoll", "LAB_HTTP_PORT", "0"));
    assertThat(settings.poolSize()).isEqualTo(7);
    assertThat(settings.epoll()).isTrue();
    assertThat(settings.asMap())
        .containsEntry("pool_size", 7)
        .containsEntry("netty_transport", "epoll")
        .containsEntry("http_port", 0);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          LAB_POOL_SIZE      | 0         | LAB_POOL_SIZE must be a whole number from 1 to 20000, got '0'
          LAB_POOL_SIZE      | many      | LAB_POOL_SIZE must be a whole number from 1 to 20000, got 'many'
          LAB_BLOCK_THE_LOOP | yes       | LAB_BLOCK_THE_LOOP must be false, true or spin, got 'yes'
          LAB_DOWNSTREAM_URL | ftp://a/  | LAB_DOWNSTREAM_URL must look like http://host:port/path
          LAB_DOWNSTREAM_URL | http://a  | LAB_DOWNSTREAM_URL must look like http://host:port/path
          LAB_DOWNSTREAM_URL | http://a b/ | LAB_DOWNSTREAM_URL must look like http://host:port/path
          LAB_FRAMEWORK_DEFAULTS | both  | LAB_FRAMEWORK_DEFAULTS must be lab or shipped, got 'both'
          LAB_POOLSIZE       | 5         | unknown setting LAB_POOLSIZE; known are [LAB_BACKLOG,
          """)
  void aBadSettingIsOneClearLine(String name, String value, String line) {
    assertThatThrownBy(() -> Settings.fromEnvironment(Map.of(name, value)))
        .isInstanceOf(BadValueException.class)
        .hasMessageStartingWith(line);
  }
}
