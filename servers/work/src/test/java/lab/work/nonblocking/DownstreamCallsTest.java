package lab.work.nonblocking;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.ConnectException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import lab.shell.TestContext;
import lab.spec.Answer;
import lab.spec.DownstreamOutcome;
import org.junit.jupiter.api.Test;

class DownstreamCallsTest {
  private static final int MANY = 20_000;

  private final CompletableFuture<byte[]> first = new CompletableFuture<>();
  private Supplier<CompletableFuture<byte[]>> next = () -> first;

  private TestContext context(String timeoutMs) throws Exception {
    return new TestContext(
        "LAB_DOWNSTREAM_CONNECTIONS", "1", "LAB_DOWNSTREAM_TIMEOUT_MS", timeoutMs);
  }

  /** Calls through {@link #next}, one at a time. */
  private DownstreamCalls calls(TestContext context) {
    return new DownstreamCalls(context.model(), _ -> next.get());
  }

  private static List<CompletableFuture<Answer>> begin(DownstreamCalls calls, int count) {
    List<CompletableFuture<Answer>> begun = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      begun.add(calls.call());
    }
    return begun;
  }

  private static List<Answer> ended(List<CompletableFuture<Answer>> calls) throws Exception {
    CompletableFuture.allOf(calls.toArray(CompletableFuture[]::new)).get(30, TimeUnit.SECONDS);
    return calls.stream().map(CompletableFuture::join).toList();
  }

  @Test
  void thousandsThatFailAtOnceDoNotPileUpOnOneStack() throws Exception {
    try (TestContext context = context("60000")) {
      List<CompletableFuture<Answer>> begun = begin(calls(context), MANY);
      next = () -> CompletableFuture.failedFuture(new ConnectException());
      first.complete(new byte[0]);
      List<Answer> answers = ended(begun);
      assertThat(answers.getFirst().status()).isEqualTo(200);
      assertThat(answers.subList(1, MANY)).allMatch(answer -> answer.status() == 502);
    }
  }

  @Test
  void thousandsThatAreLateAllSaySo() throws Exception {
    try (TestContext context = context("300")) {
      DownstreamCalls calls = calls(context);
      List<CompletableFuture<Answer>> begun = begin(calls, MANY);
      // The second waits for a place, and does until its deadline: the first never ends by itself.
      var _ = begun.get(1).get(30, TimeUnit.SECONDS);
      first.completeExceptionally(new TimeoutException());
      assertThat(ended(begun)).allMatch(answer -> answer.status() == 504);
      // Every place was given back.
      context.change("downstream_timeout_ms", 60_000);
      next = () -> CompletableFuture.completedFuture(new byte[0]);
      assertThat(ended(begin(calls, 1)).getFirst().status()).isEqualTo(200);
    }
  }

  @Test
  void aClientThatThrowsHasFailed() throws Exception {
    try (TestContext context = context("60000")) {
      next =
          () -> {
            throw new IllegalStateException("thrown on purpose");
          };
      assertThat(ended(begin(calls(context), 2))).allMatch(answer -> answer.status() == 502);
    }
  }

  @Test
  void whatAFailureMeansIsReadOffItsCauses() {
    DownstreamCalls.Client client = _ -> first;
    assertThat(client.outcomeOf(new IllegalStateException(new ConnectException())))
        .isEqualTo(DownstreamOutcome.REFUSED);
    assertThat(client.outcomeOf(new IllegalStateException(new TimeoutException())))
        .isEqualTo(DownstreamOutcome.TIMEOUT);
    assertThat(client.outcomeOf(new IllegalStateException())).isEqualTo(DownstreamOutcome.ERROR);
  }
}
