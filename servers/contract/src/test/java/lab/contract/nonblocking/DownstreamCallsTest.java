package lab.contract.nonblocking;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.ConnectException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import lab.contract.Answer;
import lab.contract.DownstreamOutcome;
import lab.contract.LabServer;
import lab.contract.ModelContext;
import lab.contract.ServerModel;
import lab.contract.Settings;
import lab.contract.TrafficServer;
import org.junit.jupiter.api.Test;

class DownstreamCallsTest {
  private static final int MANY = 20_000;

  private final CompletableFuture<byte[]> first = new CompletableFuture<>();
  private Supplier<CompletableFuture<byte[]>> next = () -> first;

  /** Runs a body with calls through {@link #next}, one at a time. */
  private void withCalls(String timeoutMs, Body body) throws Exception {
    CompletableFuture<ModelContext> context = new CompletableFuture<>();
    ServerModel model =
        new ServerModel() {
          @Override
          public String name() {
            return "nothing";
          }

          @Override
          public TrafficServer start(ModelContext given) {
            context.complete(given);
            return new TrafficServer() {
              @Override
              public int port() {
                return 1;
              }

              @Override
              public void stop(Duration grace) {}
            };
          }
        };
    Settings settings =
        Settings.fromEnvironment(
            Map.of(
                "LAB_MANAGEMENT_PORT", "0",
                "LAB_DOWNSTREAM_CONNECTIONS", "1",
                "LAB_DOWNSTREAM_TIMEOUT_MS", timeoutMs));
    try (LabServer _ = LabServer.start(model, settings, () -> {})) {
      body.run(new DownstreamCalls(context.get(), _ -> next.get()));
    }
  }

  private interface Body {
    void run(DownstreamCalls calls) throws Exception;
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
    withCalls(
        "60000",
        calls -> {
          List<CompletableFuture<Answer>> begun = begin(calls, MANY);
          next = () -> CompletableFuture.failedFuture(new ConnectException());
          first.complete(new byte[0]);
          List<Answer> answers = ended(begun);
          assertThat(answers.getFirst().status()).isEqualTo(200);
          assertThat(answers.subList(1, MANY)).allMatch(answer -> answer.status() == 502);
        });
  }

  @Test
  void thousandsThatAreLateAllSaySo() throws Exception {
    withCalls(
        "300",
        calls -> {
          List<CompletableFuture<Answer>> begun = begin(calls, MANY);
          Thread.sleep(300);
          first.completeExceptionally(new TimeoutException());
          assertThat(ended(begun)).allMatch(answer -> answer.status() == 504);
          // Every place was given back.
          next = () -> CompletableFuture.completedFuture(new byte[0]);
          assertThat(ended(begin(calls, 1)).getFirst().status()).isEqualTo(200);
        });
  }

  @Test
  void aClientThatThrowsHasFailed() throws Exception {
    withCalls(
        "1000",
        calls -> {
          next =
              () -> {
                throw new IllegalStateException("thrown on purpose");
              };
          assertThat(ended(begin(calls, 2))).allMatch(answer -> answer.status() == 502);
        });
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
