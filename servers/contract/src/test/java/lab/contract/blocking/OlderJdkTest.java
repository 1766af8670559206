package lab.contract.blocking;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.DataInputStream;
import java.io.IOException;
import java.util.List;
import lab.contract.Answer;
import lab.contract.TestContext;
import org.junit.jupiter.api.Test;

/** What the blocking models need of the contract loads on JDK 21, and what does not says so. */
class OlderJdkTest {
  /** The version of class files that JDK 21 writes. It reads no later one (JVMS 4.1). */
  private static final long OF_JDK_21 = 65;

  @Test
  void onlyStructuredConcurrencyIsCompiledForALaterJdk() throws Exception {
    assertThat(version(BlockingRoutes.class)).isEqualTo(OF_JDK_21);
    assertThat(version(Aggregates.class)).isEqualTo(OF_JDK_21);
    assertThat(version(StructuredAggregates.class)).isGreaterThan(OF_JDK_21);
  }

  @Test
  void withoutItsRoutesSayWhatTheyNeed() throws Exception {
    try (TestContext context = new TestContext()) {
      Aggregates older = new Aggregates(context.model(), Thread.ofVirtual().factory());
      for (Answer answer :
          List.of(
              older.aggregate(1, 1),
              older.firstSuccess(1, 1),
              older.aggregateWithFallback(1, 1, 1),
              older.multiAggregate(1, 1))) {
        assertThat(answer.status()).isEqualTo(501);
        assertThat(answer.body())
            .asString(UTF_8)
            .isEqualTo("{\"error\":\"structured concurrency needs JDK 25\"}");
      }
      assertThat(older.aggregateOld(1, 1).status()).isEqualTo(200);
    }
  }

  private static long version(Class<?> of) throws IOException {
    try (var file = new DataInputStream(of.getResourceAsStream(of.getSimpleName() + ".class"))) {
      // Magic number, minor and major version: 32, 16 and 16 bits.
      return file.readLong() & 0xFFFF;
    }
  }
}
