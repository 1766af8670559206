package lab.reactor;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class TimersTest {
  private final Timers timers = new Timers();
  private final List<String> due = new ArrayList<>();

  @Test
  void timersComeDueInTheOrderOfTheirTimes() {
    timers.set(named("late"), 30);
    timers.set(named("early"), 10);
    timers.set(named("middle"), 20);
    timers.callDue(9);
    assertThat(due).isEmpty();
    timers.callDue(20);
    assertThat(due).containsExactly("early", "middle");
    timers.callDue(30);
    assertThat(due).containsExactly("early", "middle", "late");
    assertThat(timers.size()).isZero();
  }

  @Test
  void aCancelledTimerLeavesNothingBehind() {
    Timers.Timer cancelled = named("cancelled");
    timers.set(cancelled, 10);
    timers.set(named("kept"), 20);
    timers.cancel(cancelled);
    assertThat(timers.size()).isEqualTo(1);
    timers.cancel(cancelled);
    timers.callDue(100);
    assertThat(due).containsExactly("kept");
  }

  @Test
  void settingAnewReplacesTheTime() {
    Timers.Timer timer = named("once");
    timers.set(timer, 10);
    timers.set(timer, 50);
    timers.callDue(49);
    assertThat(due).isEmpty();
    timers.callDue(50);
    assertThat(due).containsExactly("once");
  }

  @Test
  void aTimerMaySetItselfAgain() {
    Timers.Timer[] tick = new Timers.Timer[1];
    tick[0] =
        timers.timer(
            () -> {
              due.add("tick");
              timers.set(tick[0], 10L * (due.size() + 1));
            });
    timers.set(tick[0], 10);
    timers.callDue(10);
    timers.callDue(20);
    assertThat(due).containsExactly("tick", "tick");
  }

  @Test
  void oneTimerMayCancelAnotherThatIsDueToo() {
    Timers.Timer rival = named("rival");
    timers.set(
        timers.timer(
            () -> {
              due.add("first");
              rival.cancel();
            }),
        10);
    timers.set(rival, 10);
    timers.callDue(10);
    assertThat(due).containsExactly("first");
  }

  @Test
  void theWaitIsRoundedUpSoThatNothingIsCalledEarly() {
    assertThat(timers.millisToNext(0)).isEqualTo(-1);
    timers.set(named("next"), 2_000_001);
    assertThat(timers.millisToNext(0)).isEqualTo(3);
    assertThat(timers.millisToNext(1)).isEqualTo(2);
    assertThat(timers.millisToNext(2_000_001)).isZero();
    assertThat(timers.millisToNext(9_000_000)).isZero();
  }

  @Test
  void timesMayWrapAround() {
    timers.set(named("after"), Long.MIN_VALUE + 5);
    timers.set(named("before"), Long.MAX_VALUE - 5);
    timers.callDue(Long.MAX_VALUE);
    assertThat(due).containsExactly("before");
    timers.callDue(Long.MIN_VALUE + 5);
    assertThat(due).containsExactly("before", "after");
  }

  @Test
  void manyTimersSetAndCancelledAtRandomComeInOrder() {
    Random random = new Random(7);
    List<Long> seen = new ArrayList<>();
    List<Timers.Timer> all = new ArrayList<>();
    List<Long> expected = new ArrayList<>();
    for (int i = 0; i < 5_000; i++) {
      long at = random.nextInt(1_000);
      Timers.Timer timer = timers.timer(() -> seen.add(at));
      timers.set(timer, at);
      all.add(timer);
      expected.add(at);
    }
    for (int i = 0; i < 2_000; i++) {
      int index = random.nextInt(all.size());
      timers.cancel(all.remove(index));
      var _ = expected.remove(index);
    }
    timers.callDue(1_000);
    expected.sort(Long::compare);
    assertThat(seen).isEqualTo(expected);
  }

  private Timers.Timer named(String name) {
    return timers.timer(() -> due.add(name));
  }
}
