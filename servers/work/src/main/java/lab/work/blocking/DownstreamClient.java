package lab.work.blocking;

import java.io.IOException;
import org.jspecify.annotations.Nullable;

/**
 * A client of the downstream that keeps its connections alive: the lab's own, or a framework's. It
 * need not limit the number of calls, as {@link BlockingDownstream} does. Any number of threads.
 */
public interface DownstreamClient extends AutoCloseable {
  /**
   * Returns the body of a 200, whose last byte is read before the deadline of {@link
   * System#nanoTime}; null of any other status, if the client does not throw.
   *
   * @throws java.net.SocketTimeoutException at the deadline
   * @throws java.net.ConnectException when the connection was refused
   */
  byte @Nullable [] get(long deadlineNanos) throws IOException, InterruptedException;

  /** Closes what is idle. */
  @Override
  void close();
}
