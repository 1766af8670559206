package lab.work.nonblocking;

import java.util.concurrent.Callable;
import java.util.function.BiConsumer;
import lab.spec.DownstreamOutcome;
import org.jspecify.annotations.Nullable;

/**
 * What an event loop offers to the routes. All of it is called on the loop's thread and returns at
 * once. Every callback comes on that thread too, once, perhaps before the call has returned, and
 * never after what it belongs to was cancelled.
 */
public interface LoopServices {
  /** Something begun that may be given up. */
  interface Pending {
    /** Gives it up; does nothing when it has ended. */
    void cancel();
  }

  /** Takes the end of a downstream call. */
  interface DownstreamCallback {
    /** The call has ended. The body is empty unless the outcome is OK. */
    void ended(DownstreamOutcome outcome, byte[] body);
  }

  /** Runs this when so many milliseconds have passed. */
  Pending after(long millis, Runnable then);

  /** Works on a helper thread, then hands over the result and null, or null and the failure. */
  <T> void handOver(Callable<T> work, BiConsumer<@Nullable T, @Nullable Throwable> then);

  /** Calls the downstream. */
  void callDownstream(DownstreamCallback callback);
}
