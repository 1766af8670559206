package lab.work.blocking;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;

/** Closes at even times what nobody uses, on a daemon thread that survives what a sweep throws. */
public final class Sweeper implements AutoCloseable {
  private static final Logger LOG = System.getLogger(Sweeper.class.getName());

  private final Duration pause;
  private final Runnable sweep;
  private final Thread thread;

  /** Starts; the first sweep comes after the first pause. */
  public Sweeper(String name, Duration pause, Runnable sweep) {
    this.pause = pause;
    this.sweep = sweep;
    this.thread = Thread.ofPlatform().daemon().name(name).start(this::run);
  }

  /** Ends it, soon. */
  @Override
  public void close() {
    thread.interrupt();
  }

  private void run() {
    try {
      while (true) {
        Thread.sleep(pause);
        try {
          sweep.run();
        } catch (RuntimeException | Error e) {
          LOG.log(Level.ERROR, "a bug: a sweep failed", e);
        }
      }
    } catch (InterruptedException e) {
      // Stopped.
    }
  }
}
