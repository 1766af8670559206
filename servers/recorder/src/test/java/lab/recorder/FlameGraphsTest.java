package lab.recorder;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class FlameGraphsTest {
  @Test
  void aFrameIsAsWideAsItsStacksWeigh() {
    String page = FlameGraphs.page(Map.of("a.B.run:1;a.C.hot:7", 300L, "a.B.run:1;[lost]", 100L));
    assertThat(page).contains("a.B.run:1", "C.hot:7", "[lost]", "inverted = true");
    // All, the one frame in it, and the two in that: its name and type, and what it weighs.
    assertThat(frames(page).strip()).isEqualTo("n(3,400)\nu(17)\nu(11,100)\nn(25,300)");
  }

  @Test
  void whatIsTooNarrowToBeSeenIsLeftOut() {
    Map<String, Long> stacks = new TreeMap<>(Map.of("a.B.run:1", 1_000_000L, "a.C.rare:1", 400L));
    assertThat(frames(FlameGraphs.page(stacks)).strip().lines()).hasSize(2);
    assertThat(frames(FlameGraphs.page(Map.of())).strip().lines()).hasSize(1);
  }

  /** The converter escapes quotes and backslashes only. */
  @Test
  void noNameEndsThePagesScript() {
    String evil = "x</script><script>alert(1)</script>\\'+alert(2)+'";
    String page = FlameGraphs.page(Map.of(evil + ":1", 1L));
    assertThat(page).containsOnlyOnce("<script").containsOnlyOnce("</script");
    assertThat(page).contains("\\\\\\'+alert(2)+\\'");
  }

  @Test
  void thePageFetchesNothing() {
    String page = FlameGraphs.page(Map.of("a.B.run:1", 1L));
    assertThat(page)
        .doesNotContainPattern("(?i)src=|<link|@import|url\\(|fetch\\(|XMLHttp|import\\(");
  }

  private static String frames(String page) {
    return page.substring(page.indexOf("unpack(cpool);\n") + 15, page.indexOf("\nsearch("));
  }
}
