package lab.executors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import lab.contract.BadValueException;
import org.junit.jupiter.api.Test;

class PlanTest {
  @Test
  void aPoolSleepsInRoundsAndTheLastRoundCountsWhole() throws Exception {
    assertThat(Plan.parse(List.of("fixed-pool", "10000", "100", "200")).bound())
        .isEqualTo(Duration.ofSeconds(5));
    assertThat(Plan.parse(List.of("fixed-pool", "10001", "100", "200")).bound())
        .isEqualTo(Duration.ofMillis(5100));
    assertThat(Plan.parse(List.of("fixed-pool", "1", "100", "200")).bound())
        .isEqualTo(Duration.ofMillis(100));
  }

  @Test
  void virtualThreadsSleepAllAtOnce() throws Exception {
    assertThat(Plan.parse(List.of("virtual-threads", "10000", "100", "200")).bound())
        .isEqualTo(Duration.ofMillis(100));
  }

  @Test
  void wordsAreWhatIsParsed() throws Exception {
    List<String> words = List.of("virtual-threads", "7", "3", "2");
    assertThat(Plan.parse(words).words()).isEqualTo(words);
  }

  @Test
  void badWordsAreRefusedByName() {
    assertRefused(List.of(), "four words");
    assertRefused(List.of("pool", "1", "1", "1"), "fixed-pool, virtual-threads");
    assertRefused(List.of("fixed-pool", "0", "1", "1"), "tasks must be");
    assertRefused(List.of("fixed-pool", "1", "1.5", "1"), "sleep_ms must be");
    assertRefused(List.of("fixed-pool", "1", "1", "20001"), "pool_size must be");
  }

  private static void assertRefused(List<String> words, String says) {
    assertThatThrownBy(() -> Plan.parse(words))
        .isInstanceOf(BadValueException.class)
        .hasMessageContaining(says);
  }
}
