package lab.work.blocking;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.DataInputStream;
import java.io.IOException;
import lab.shell.TestContext;
import lab.spec.Route;
import lab.spec.RouteCall;
import org.junit.jupiter.api.Test;

/** What the blocking models need of the contract loads on JDK 21. */
class OlderJdkTest {
  /** The version of class files that JDK 21 writes. It reads no later one (JVMS 4.1). */
  private static final long OF_JDK_21 = 65;

  @Test
  void theRoutesAreCompiledForIt() throws Exception {
    assertThat(version(BlockingRoutes.class)).isEqualTo(OF_JDK_21);
    assertThat(version(Demonstrations.class)).isEqualTo(OF_JDK_21);
  }

  /** So it is here, where the jar is missing that only one JDK can load. */
  @Test
  void withoutDemonstrationsALaneDeclaresNone() throws Exception {
    assertThat(Demonstrations.routes()).isEqualTo(Route.COMMON);
    try (TestContext context = new TestContext()) {
      Demonstrations none = Demonstrations.of(context.model());
      RouteCall call = context.model().routes().resolve("GET", "/aggregate", null);
      assertThatThrownBy(() -> none.answer(call)).isInstanceOf(IllegalStateException.class);
    }
  }

  private static long version(Class<?> of) throws IOException {
    try (var file = new DataInputStream(of.getResourceAsStream(of.getSimpleName() + ".class"))) {
      // Magic number, minor and major version: 32, 16 and 16 bits.
      return file.readLong() & 0xFFFF;
    }
  }
}
