package lab.contract.blocking;

import java.io.IOException;

/**
 * The way to the downstream, over kept-alive connections: the lab's own, or the one of a framework.
 * How many calls there may be at a time is no matter of its: {@link BlockingDownstream} sees to it.
 * Any number of threads.
 */
public interface DownstreamClient extends AutoCloseable {
  /**
   * Returns the body of a 200.
   *
   * @param deadlineNanos until when the last byte must be read, by {@link System#nanoTime}
   * @throws java.net.SocketTimeoutException at the deadline
   * @throws java.net.ConnectException when the connection was refused
   * @throws DownstreamException on any other status; where that is not to be had, IOException
   * @throws IOException whatever else goes wrong
   */
  byte[] get(long deadlineNanos) throws IOException, DownstreamException, InterruptedException;

  /** Closes what is idle. */
  @Override
  void close();
}
