package lab.spec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonTest {
  @Test
  void writesEveryKindOfValue() {
    Map<String, Object> map = new LinkedHashMap<>();
    map.put("text", "a \"b\" \\ \n");
    map.put("list", List.of(1, 2L, 1.5, true));
    map.put("nothing", null);
    assertThat(Json.write(map))
        .isEqualTo(
            "{\"text\":\"a \\\"b\\\" \\\\ \\u000a\",\"list\":[1,2,1.5,true],\"nothing\":null}");
  }

  @Test
  void refusesToGuessAtOtherTypes() {
    assertThatThrownBy(() -> Json.write(Double.NaN)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void readsNumbersInTheirOrder() throws Exception {
    assertThat(Json.readNumbers(" { \"b\" : 2 , \"a\":-1 } "))
        .containsExactly(Map.entry("b", 2L), Map.entry("a", -1L));
    assertThat(Json.readNumbers("{}")).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "[]",
        "{\"a\":1",
        "{\"a\":\"1\"}",
        "{\"a\":1.5}",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\":{\"b\":1}}",
        "{\"a\":9999999999999999999}",
        "{\"a\":1,\"a\":1}"
      })
  void refusesWhatIsNotAnObjectOfNumbers(String text) {
    assertThatThrownBy(() -> Json.readNumbers(text)).isInstanceOf(BadValueException.class);
  }
}
