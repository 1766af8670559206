package lab.work.nonblocking;

import java.util.concurrent.Executor;

/** An event loop, as the routes need it. {@link #execute} takes tasks of any thread. */
public interface LoopServices extends Executor {
  /** Something begun that may be given up. */
  @FunctionalInterface
  interface Pending {
    /** Gives it up; does nothing when it has ended. */
    void cancel();
  }

  /** Runs this, once, when so many nanoseconds have passed. Loop's thread only. */
  Pending after(long nanos, Runnable then);

  /**
   * Since when the input that is being worked on has been there, about, by {@link System#nanoTime};
   * not before the earliest time. Loop's thread only.
   */
  long readyNanos(long earliestNanos);
}
