package lab.shell;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import lab.spec.BadValueException;
import lab.spec.IntOption;
import lab.spec.Settings;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class KnobsTest {
  private final AtomicInteger first = new AtomicInteger(1);
  private final AtomicInteger second = new AtomicInteger(1);
  private final Knobs knobs = new Knobs(defaults());

  @BeforeEach
  void addTwo() {
    knobs.add(new IntOption("first", 1, 1, 10), first::get, first::set);
    knobs.add(new IntOption("second", 1, 1, 10), second::get, second::set);
  }

  @Test
  void whatIsReadBackIsWhatIsInForce() throws Exception {
    knobs.change(Map.of("first", 5L));
    assertThat(knobs.inForce()).containsEntry("first", 5).containsEntry("second", 1);
    first.set(6);
    assertThat(knobs.inForce()).containsEntry("first", 6);
  }

  @Test
  void whatAModelDoesNotHaveIsNull() {
    assertThat(knobs.inForce()).containsEntry("pool_size", null).containsEntry("queue_bound", null);
  }

  @Test
  void aLimitOfTheSettingsThatHoldsForNothingIsNull() {
    assertThat(knobs.inForce()).containsEntry("downstream_keep_idle_s", 60);
    knobs.hasNo(Settings.DOWNSTREAM_KEEP_IDLE_S.name());
    assertThat(knobs.inForce()).containsEntry("downstream_keep_idle_s", null);
  }

  @Test
  void onlyLoopsThatWorkOnRequestsCanBeBlocked() {
    knobs.hasLoops(2);
    assertThat(knobs.inForce()).containsEntry("loops", 2).containsEntry("block_the_loop", false);
    knobs.hasNo(Settings.BLOCK_THE_LOOP);
    assertThat(knobs.inForce()).containsEntry("loops", 2).containsEntry("block_the_loop", null);
    // A framework may tell the two in the other order.
    knobs.hasLoops(2);
    assertThat(knobs.inForce()).containsEntry("loops", 2).containsEntry("block_the_loop", null);
  }

  @Test
  void oneBadValueLeavesAllAsTheyWere() {
    Map<String, Long> wanted = new LinkedHashMap<>();
    wanted.put("first", 5L);
    wanted.put("second", 11L);
    assertThatThrownBy(() -> knobs.change(wanted))
        .isInstanceOf(BadValueException.class)
        .hasMessage("second must be a whole number from 1 to 10, got '11'");
    assertThat(first).hasValue(1);
  }

  @Test
  void oneThatCannotBeBroughtIntoForceLeavesAllAsTheyWere() {
    AtomicInteger third = new AtomicInteger(1);
    knobs.add(
        new IntOption("third", 1, 1, 10),
        third::get,
        value -> {
          third.set(value);
          if (value == 5) {
            throw new IllegalStateException("planted by a test");
          }
        });
    Map<String, Long> wanted = new LinkedHashMap<>();
    wanted.put("first", 5L);
    wanted.put("third", 5L);
    wanted.put("second", 5L);
    assertThatThrownBy(() -> knobs.change(wanted)).hasMessage("planted by a test");
    assertThat(knobs.inForce())
        .containsEntry("first", 1)
        .containsEntry("second", 1)
        .containsEntry("third", 1);
  }

  @Test
  void aNameThatIsNoKnobIsToldWhichAre() {
    assertThatThrownBy(() -> knobs.change(Map.of("backlog", 5L)))
        .hasMessageContaining("'backlog' cannot be changed while this server runs")
        .hasMessageContaining("[first, second]");
  }

  private static Settings defaults() {
    try {
      return Settings.fromEnvironment(Map.of());
    } catch (BadValueException e) {
      throw new AssertionError(e);
    }
  }
}
