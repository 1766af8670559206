package lab.contract;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class RouteCallTest {
  @Test
  void withoutAQueryEveryParameterHasItsDefault() {
    RouteCall call = RouteCall.resolve("GET", "/aggregate", null);
    assertThat(call.refusal()).isNull();
    assertThat(call.route()).isEqualTo(Route.AGGREGATE);
    assertThat(call.value("wait_ms")).isEqualTo(300);
    assertThat(call.value("lines")).isEqualTo(10_000);
    assertThat(RouteCall.resolve("GET", "/aggregate", null)).isSameAs(call);
  }

  @Test
  void aQuerySetsSomeAndLeavesTheDefaultsAlone() {
    RouteCall call = RouteCall.resolve("GET", "/aggregate", "lines=5");
    assertThat(call.value("lines")).isEqualTo(5);
    assertThat(call.value("wait_ms")).isEqualTo(300);
    assertThat(RouteCall.resolve("GET", "/aggregate", "").value("lines")).isEqualTo(10_000);
  }

  @Test
  void refusalsKeepTheirRouteSoThatTheyAreCountedThere() {
    RouteCall method = RouteCall.resolve("POST", "/block", null);
    assertThat(method.route()).isEqualTo(Route.BLOCK);
    assertThat(requireNonNull(method.refusal()).status()).isEqualTo(405);
    RouteCall query = RouteCall.resolve("GET", "/block", "wait_ms=x");
    assertThat(query.route()).isEqualTo(Route.BLOCK);
    assertThat(requireNonNull(query.refusal()).status()).isEqualTo(400);
    assertThat(RouteCall.resolve("GET", "none", null).route()).isEqualTo(Route.NONE);
  }

  @Test
  void anUnknownParameterIsABug() {
    RouteCall call = RouteCall.resolve("GET", "/block", null);
    assertThatThrownBy(() -> call.value("lines")).isInstanceOf(IllegalArgumentException.class);
  }
}
