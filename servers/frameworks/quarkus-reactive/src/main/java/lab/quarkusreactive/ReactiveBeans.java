package lab.quarkusreactive;

import io.smallrye.mutiny.TimeoutException;
import jakarta.enterprise.inject.Produces;
import jakarta.inject.Singleton;
import java.time.Duration;
import java.util.concurrent.CompletionStage;
import lab.quarkus.DownstreamAnswers;
import lab.shell.ModelContext;
import lab.spec.DownstreamOutcome;
import lab.work.nonblocking.DownstreamCalls;

final class ReactiveBeans {
  private ReactiveBeans() {}

  @Produces
  @Singleton
  static DownstreamCalls downstream(ModelContext context, DownstreamAnswers answers) {
    answers.publish(context);
    return new DownstreamCalls(
        context,
        new DownstreamCalls.Client() {
          @Override
          public CompletionStage<byte[]> get(Duration remaining) {
            return answers.get(remaining).subscribeAsCompletionStage();
          }

          @Override
          public DownstreamOutcome outcomeOf(Throwable failure) {
            // Mutiny's own, which is none of java.util.concurrent's.
            return failure instanceof TimeoutException
                ? DownstreamOutcome.TIMEOUT
                : DownstreamCalls.Client.super.outcomeOf(failure);
          }
        });
  }
}
