package lab.contract.nonblocking;

import java.util.concurrent.Callable;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * What an event loop offers to the routes. All of it is called on the loop's thread and returns at
 * once; every callback comes on that thread too, exactly once, unless it was cancelled before.
 */
public interface LoopServices {
  /** Something begun that may be given up; to cancel what has ended does nothing. */
  interface Pending {
    void cancel();
  }

  /** Takes the end of a downstream call. */
  interface DownstreamCallback {
    /**
     * @param body the downstream's, when the outcome is OK; empty otherwise
     */
    void ended(lab.contract.DownstreamOutcome outcome, byte[] body);
  }

  /** Runs this when so many milliseconds have passed. */
  Pending after(long millis, Runnable then);

  /**
   * Does work that may block on another thread.
   *
   * @param work runs on a helper thread, interrupted when it is cancelled
   * @param then takes the result and null, or null and the failure
   */
  <T> Pending handOver(Callable<T> work, BiConsumer<@Nullable T, @Nullable Throwable> then);

  /** Calls the downstream. */
  void callDownstream(DownstreamCallback callback);
}
