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
    assertThat(cold("fixed-pool", "10000", "100", "200").bound()).isEqualTo(Duration.ofSeconds(5));
    assertThat(cold("fixed-pool", "10001", "100", "200").bound())
        .isEqualTo(Duration.ofMillis(5100));
    assertThat(cold("fixed-pool", "1", "100", "200").bound()).isEqualTo(Duration.ofMillis(100));
  }

  @Test
  void virtualThreadsSleepAllAtOnce() throws Exception {
    assertThat(cold("virtual-threads", "10000", "100", "200").bound())
        .isEqualTo(Duration.ofMillis(100));
  }

  @Test
  void wordsAreWhatIsParsed() throws Exception {
    List<String> words = List.of("warm", "memory", "virtual-threads", "7", "3", "2", "20");
    assertThat(Plan.parse(words).words()).isEqualTo(words);
  }

  @Test
  void badWordsAreRefusedByName() {
    assertRefused(List.of(), "seven words");
    assertRefused(List.of("hot", "time", "fixed-pool", "1", "1", "1", "0"), "cold, train, aot");
    assertRefused(List.of("cold", "space", "fixed-pool", "1", "1", "1", "0"), "time, memory");
    assertRefused(
        List.of("cold", "time", "pool", "1", "1", "1", "0"), "fixed-pool, virtual-threads");
    assertRefused(List.of("cold", "time", "fixed-pool", "0", "1", "1", "0"), "tasks must be");
    assertRefused(List.of("cold", "time", "fixed-pool", "1", "1.5", "1", "0"), "sleep_ms must be");
    assertRefused(
        List.of("cold", "time", "fixed-pool", "1", "1", "20001", "0"), "pool_size must be");
    assertRefused(List.of("cold", "time", "fixed-pool", "1", "1", "1", "1001"), "rounds must be");
  }

  @Test
  void onlyAWarmJvmHasRoundsBefore() {
    assertRefused(List.of("cold", "time", "fixed-pool", "1", "1", "1", "1"), "rounds before");
    assertRefused(List.of("aot", "time", "fixed-pool", "1", "1", "1", "1"), "rounds before");
    assertRefused(List.of("warm", "time", "fixed-pool", "1", "1", "1", "0"), "rounds before");
  }

  private static Plan cold(String executor, String tasks, String sleep, String pool)
      throws BadValueException {
    return Plan.parse(List.of("cold", "time", executor, tasks, sleep, pool, "0"));
  }

  private static void assertRefused(List<String> words, String says) {
    assertThatThrownBy(() -> Plan.parse(words))
        .isInstanceOf(BadValueException.class)
        .hasMessageContaining(says);
  }
}
