package lab.quarkusvirtual;

import io.smallrye.mutiny.TimeoutException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import lab.quarkus.DownstreamAnswers;
import lab.work.blocking.DownstreamClient;

/** Waits for Quarkus' REST client on the caller's own thread, which is cheap enough for it. */
record WaitingClient(DownstreamAnswers downstream) implements DownstreamClient {
  @Override
  public byte[] get(long deadlineNanos) throws IOException {
    Duration remaining = Duration.ofNanos(deadlineNanos - System.nanoTime());
    if (!remaining.isPositive()) {
      throw new SocketTimeoutException("no time left");
    }
    try {
      return downstream.get(remaining).await().indefinitely();
    } catch (TimeoutException e) {
      throw new SocketTimeoutException("deadline");
    } catch (RuntimeException e) {
      throw asIo(e);
    }
  }

  /** Does nothing: the client is Quarkus', which closes it. */
  @Override
  public void close() {}

  /** Mutiny throws what is checked as the cause of something that is not. */
  private static IOException asIo(RuntimeException failure) {
    for (Throwable each = failure; each != null; each = each.getCause()) {
      if (each instanceof ConnectException refused) {
        return refused;
      }
    }
    return new IOException(failure);
  }
}
