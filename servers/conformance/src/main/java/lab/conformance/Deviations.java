package lab.conformance;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Where a model's server or framework does other than {@link ProtocolTest} and {@link ContractTest}
 * demand: a row for each in {@code deviations.md}, beside this class.
 */
record Deviations(String model, Map<String, String> byRule) {
  /** All that rows may be about. */
  private static final Set<String> RULES =
      Stream.concat(
              Stream.of(ProtocolTest.class, ContractTest.class)
                  .flatMap(tests -> Arrays.stream(tests.getDeclaredMethods()))
                  .filter(method -> method.isAnnotationPresent(Test.class))
                  .map(method -> method.getName()),
              Stream.of(Malformed.values(), OddAnswer.values())
                  .flatMap(Arrays::stream)
                  .map(Enum::name))
          .collect(Collectors.toUnmodifiableSet());

  /** Reads a model's rows. */
  static Deviations of(String model) throws IOException {
    Map<String, String> byRule = new HashMap<>();
    try (InputStream table = Deviations.class.getResourceAsStream("deviations.md")) {
      String text = new String(requireNonNull(table).readAllBytes(), UTF_8);
      text.lines()
          .filter(line -> line.startsWith("| `"))
          .map(line -> line.split(" *\\| *", -1))
          .forEach(
              cells -> {
                String rule = cells[1].replace("`", "");
                assertThat(RULES).as("deviations.md").contains(rule);
                assertThat(cells[4]).as("the reason of " + rule).isNotBlank();
                if (Arrays.asList(cells[2].split(", *")).contains(model)) {
                  assertThat(byRule.put(rule, cells[3])).as(rule + " twice").isNull();
                }
              });
    }
    return new Deviations(model, byRule);
  }

  /** Whether something else than what is allowed is to happen. */
  boolean declares(String rule) {
    return byRule.containsKey(rule);
  }

  /** Compares with what is allowed, or with what was declared instead, which then must happen. */
  void verify(String rule, String happened, String... allowed) {
    String declared = byRule.get(rule);
    if (declared == null) {
      assertThat(happened).as("%s by %s", rule, model).isIn((Object[]) allowed);
    } else {
      List<String> instead = Arrays.asList(declared.split(" or "));
      assertThat(happened).as("%s by %s, as declared", rule, model).isIn(instead);
      // Of several outcomes one may be allowed: another version of the server does as demanded.
      assertThat(List.of(allowed).containsAll(instead))
          .as("%s by %s is declared, but no deviation", rule, model)
          .isFalse();
    }
  }
}
