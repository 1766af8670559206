package lab.spec;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class RoutesTest {
  private final Routes routes = new Routes(Route.WITH_DEMONSTRATIONS);

  @Test
  void withoutAQueryEveryParameterHasItsDefault() {
    RouteCall call = routes.resolve("GET", "/file", null);
    assertThat(call.refusal()).isNull();
    assertThat(call.route()).isEqualTo(Route.FILE);
    assertThat(call.value("lines")).isEqualTo(10_000);
    assertThat(routes.resolve("GET", "/file", null)).isSameAs(call);
  }

  @Test
  void aQuerySetsSomeAndLeavesTheDefaultsAlone() {
    RouteCall call = routes.resolve("GET", "/aggregate", "lines=5");
    assertThat(call.value("lines")).isEqualTo(5);
    assertThat(call.value("wait_ms")).isEqualTo(300);
    assertThat(routes.resolve("GET", "/aggregate", "").value("lines")).isEqualTo(10_000);
  }

  @Test
  void refusalsKeepTheirRouteSoThatTheyAreCountedThere() {
    RouteCall method = routes.resolve("POST", "/block", null);
    assertThat(method.route()).isEqualTo(Route.BLOCK);
    assertThat(requireNonNull(method.refusal()).status()).isEqualTo(405);
    RouteCall query = routes.resolve("GET", "/block", "wait_ms=x");
    assertThat(query.route()).isEqualTo(Route.BLOCK);
    assertThat(requireNonNull(query.refusal()).status()).isEqualTo(400);
    assertThat(routes.resolve("GET", "none", null).route()).isEqualTo(Route.NONE);
  }

  @Test
  void aRouteOfOtherLanesIsNone() {
    Routes common = new Routes(Route.COMMON);
    for (Route route : Route.WITH_DEMONSTRATIONS) {
      RouteCall call = common.resolve("GET", route.path(), null);
      if (Route.COMMON.contains(route)) {
        assertThat(call.refusal()).isNull();
      } else {
        assertThat(call.route()).isEqualTo(Route.NONE);
        assertThat(requireNonNull(call.refusal()).status()).isEqualTo(404);
      }
    }
    assertThat(common.paths()).hasSize(8);
    assertThat(routes.paths()).hasSize(13);
  }

  @Test
  void anUnknownParameterIsABug() {
    RouteCall call = routes.resolve("GET", "/block", null);
    assertThatThrownBy(() -> call.value("lines")).isInstanceOf(IllegalArgumentException.class);
  }
}
