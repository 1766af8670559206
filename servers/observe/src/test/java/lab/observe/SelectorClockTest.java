package lab.observe;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class SelectorClockTest {
  private static final long MS = 1_000_000;

  private final SelectorClock clock = new SelectorClock(0);

  @Test
  void whatIsFoundAtOnceBecameReadyInTheMiddleOfTheWork() {
    clock.asked(10 * MS);
    clock.selected(10 * MS + 1_000);
    assertThat(clock.selectedNanos()).isEqualTo(10 * MS + 1_000);
    assertThat(clock.readyNanos()).isEqualTo(5 * MS + 500);
  }

  @Test
  void whatTheSelectorWaitedForBecameReadyAsItReturned() {
    clock.asked(10 * MS);
    // A ninth of the work before: requests at even times leave the loop no longer idle than that.
    clock.selected(11 * MS);
    assertThat(clock.readyNanos()).isEqualTo(clock.selectedNanos()).isEqualTo(11 * MS);
  }

  @Test
  void afterLongWorkASelectorThatIsSlowFoundItAtOnce() {
    clock.asked(3_000 * MS);
    clock.selected(3_010 * MS);
    assertThat(clock.readyNanos()).isEqualTo(1_505 * MS);
  }

  @Test
  void whatASelectionDidNotHoldHasBeenThereSinceTheOneBefore() {
    clock.asked(100 * MS);
    clock.selected(100 * MS);
    clock.took(SelectorClock.MOST_KEYS);
    clock.asked(110 * MS);
    clock.selected(110 * MS);
    assertThat(clock.readyNanos()).isEqualTo(55 * MS);
    clock.took(SelectorClock.MOST_KEYS - 1);
    clock.asked(120 * MS);
    clock.selected(120 * MS);
    assertThat(clock.readyNanos()).isEqualTo(115 * MS);
  }

  @Test
  void nothingIsReadyBeforeItWasAskedFor() {
    clock.asked(4 * MS);
    clock.selected(4 * MS);
    // A call that began at 2.5 ms: its answer came between then and 4 ms.
    assertThat(clock.readyNanos(2_500_000)).isEqualTo(3_250_000);
    assertThat(clock.readyNanos(-1)).isEqualTo(2 * MS);
    assertThat(clock.readyNanos(5 * MS)).isEqualTo(4 * MS);
  }
}
