package lab.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.entry;

import org.junit.jupiter.api.Test;

class LiveClassesTest {
  @Test
  void aHistogramIsReadByClassAndSmallOnesAreLeftOut() {
    String told =
        """
         num     #instances         #bytes  class name (module)
        -------------------------------------------------------
           1:          5052         425352  [B (java.base@25.0.1)
           2:            10          20480  jdk.internal.vm.StackChunk (java.base@25.0.1)
           3:             3           1500  lab.Twice
           4:             3           1500  lab.Twice
           5:             1           1023  lab.Small
        Total          5069         449855
        """;
    assertThat(LiveClasses.read(told))
        .containsExactly(
            entry("[B", 425_352L),
            entry("jdk.internal.vm.StackChunk", 20_480L),
            entry("lab.Twice", 3000L));
  }

  /** Its own objects are what it counts. */
  static final class Held {
    final byte[] bytes = new byte[100];
  }

  @Test
  void theJvmTellsOfWhatItHolds() throws Exception {
    Held[] held = new Held[10_000];
    for (int i = 0; i < held.length; i++) {
      held[i] = new Held();
    }
    // An object is 8 bytes at least, with its reference.
    assertThat(LiveClasses.now().get(Held.class.getName())).isBetween(80_000L, 320_000L);
    assertThat(held[0].bytes).hasSize(100);
  }
}
