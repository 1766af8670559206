package lab.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import lab.conformance.Rules.Rule;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.provider.CsvSource;

class RulesTest {
  @Test
  void eachRuleHasATest() {
    Rules rules = Rules.of("fixed-pool");
    assertThat(
            Stream.of(
                    RoutesTest.class, ProtocolTest.class, DownstreamTest.class, ContractTest.class)
                .flatMap(tests -> Stream.of(tests.getDeclaredMethods()))
                .flatMap(RulesTest::rules))
        .doesNotHaveDuplicates()
        .containsExactlyInAnyOrderElementsOf(
            rules.levels().keySet().stream().filter(rule -> !rule.startsWith("9.")).toList());
    assertThat(rules.chosen()).containsExactlyInAnyOrder("9.1", "9.2", "9.3");
  }

  private static Stream<String> rules(Method test) {
    Rule rule = test.getAnnotation(Rule.class);
    CsvSource table = test.getAnnotation(CsvSource.class);
    if (rule != null || table == null) {
      return rule == null ? Stream.of() : Stream.of(rule.value());
    }
    return table.textBlock().lines().map(row -> row.split(" ", -1)[0]);
  }

  @Test
  void aDeviationMustHappen() {
    Rules rules =
        new Rules(Map.of("1.1", "SHOULD", "1.2", "SHOULD"), Map.of("1.2", "200 or 502"), Set.of());
    rules.verify("1.1", "200", List.of("200"));
    rules.verify("1.2", "502", List.of("200"));
    assertThatThrownBy(() -> rules.verify("1.1", "502", List.of("200")))
        .isInstanceOf(AssertionError.class);
    assertThatThrownBy(() -> rules.verify("1.2", "404", List.of("200")))
        .isInstanceOf(AssertionError.class);
    assertThatThrownBy(() -> rules.verify("1.2", "200", List.of("200", "502")))
        .isInstanceOf(AssertionError.class);
  }
}
