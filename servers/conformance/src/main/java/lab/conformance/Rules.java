package lab.conformance;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * FAIRNESS.md as one lane keeps it.
 *
 * @param levels MUST, SHOULD or MAY, by rule
 * @param instead what the lane does instead of what a rule says
 * @param chosen the rules at level MAY that the lane follows
 */
record Rules(Map<String, String> levels, Map<String, String> instead, Set<String> chosen) {
  /** A test's rules, the first by its outcome. Rows of a table begin with theirs. */
  @Retention(RetentionPolicy.RUNTIME)
  @Target(ElementType.METHOD)
  @interface Rule {
    String[] value();
  }

  /**
   * Reads the page's rows: {@code | rule | level | what | lanes |}, and below them the deviations,
   * {@code | rule | lanes | what happens | why |}.
   */
  static Rules of(String lane) {
    Rules rules = new Rules(new HashMap<>(), new HashMap<>(), new HashSet<>());
    try (InputStream page = Rules.class.getResourceAsStream("FAIRNESS.md")) {
      new String(requireNonNull(page).readAllBytes(), UTF_8)
          .lines()
          .filter(line -> line.matches("\\| \\d.*"))
          .map(line -> line.split(" *\\| *", -1))
          .forEach(cells -> rules.add(lane, cells));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return rules;
  }

  private void add(String lane, String[] cells) {
    String rule = cells[1];
    if (List.of("MUST", "SHOULD", "MAY").contains(cells[2])) {
      assertThat(levels.put(rule, cells[2])).as("rule %s twice", rule).isNull();
      if (cells[2].equals("MAY") && names(cells[4], lane)) {
        chosen.add(rule);
      }
      return;
    }
    assertThat(levels).as("a deviation from a rule").containsEntry(rule, "SHOULD");
    assertThat(cells[4]).as("why there is a deviation from %s", rule).isNotBlank();
    if (names(cells[2], lane)) {
      assertThat(instead.put(rule, cells[3])).as("deviation from %s twice", rule).isNull();
    }
  }

  private static boolean names(String lanes, String lane) {
    return Arrays.asList(lanes.split(", *", -1)).contains(lane);
  }

  /** Compares with what the rule allows, or with its deviation, which then must happen. */
  void verify(String rule, String happened, List<String> allowed) {
    assertThat(levels).as("rules").containsKey(rule);
    String declared = instead.get(rule);
    if (declared == null) {
      assertThat(happened).as("rule %s", rule).isIn(allowed);
    } else {
      List<String> outcomes = Arrays.asList(declared.split(" or ", -1));
      assertThat(happened).as("rule %s, with a deviation", rule).isIn(outcomes);
      // Of several outcomes one may be allowed: another version of the server keeps the rule.
      assertThat(allowed.containsAll(outcomes)).as("the deviation from %s is none", rule).isFalse();
    }
  }
}
