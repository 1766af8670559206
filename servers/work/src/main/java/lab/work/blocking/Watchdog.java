package lab.work.blocking;

import static java.util.Objects.requireNonNull;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Ends what is still under way at its deadline. A time limit of a read's own would set and cancel a
 * timer, which on a virtual thread wakes the JDK's thread of timers twice. Here reads wait in a
 * list, soonest deadline first and nearly in the order of their calls, and one thread sleeps until
 * the first, so that it wakes about once per time limit. Any number of threads.
 */
public final class Watchdog implements AutoCloseable {
  /** What can be watched, once at a time. Its fields are the watchdog's. */
  public abstract static class Watched {
    private long deadlineNanos;
    private boolean isListed;
    private boolean isLate;
    private Watched earlier = this;
    private Watched later = this;

    /** Breaks it off: the deadline has passed. Called once, by the watchdog's thread. */
    protected abstract void breakOff();
  }

  private static final Logger LOG = System.getLogger(Watchdog.class.getName());
  private static final long FAR_NANOS = Duration.ofHours(1).toNanos();

  private final Thread thread;

  /** Closes the ring: the first comes after it, the last before. */
  private final Watched end =
      new Watched() {
        @Override
        protected void breakOff() {
          throw new AssertionError();
        }
      };

  private long wakesAtNanos;

  public Watchdog(String name) {
    thread = Thread.ofPlatform().daemon().name(name).start(this::run);
  }

  /** Watches until the deadline, by {@link System#nanoTime}, or {@link #forget}. */
  public synchronized void watch(Watched watched, long deadlineNanos) {
    watched.deadlineNanos = deadlineNanos;
    watched.isListed = true;
    Watched before = end.earlier;
    while (!before.equals(end) && before.deadlineNanos - deadlineNanos > 0) {
      before = before.earlier;
    }
    watched.earlier = before;
    watched.later = before.later;
    watched.later.earlier = watched;
    before.later = watched;
    if (wakesAtNanos - deadlineNanos > 0) {
      wakesAtNanos = deadlineNanos;
      notifyAll();
    }
  }

  /** Watches no longer; returns whether it was too late, and has been or is just broken off. */
  public synchronized boolean forget(Watched watched) {
    if (watched.isListed) {
      unlink(watched);
    }
    return watched.isLate;
  }

  /** Breaks off what is still under way, and watches nothing any more. */
  @Override
  public void close() {
    thread.interrupt();
  }

  private void run() {
    try {
      while (true) {
        // Not under the lock: closing a socket takes its time, and calls would wait for it.
        breakOff(takeLate());
      }
    } catch (InterruptedException e) {
      // Stopped: nobody else would end a read of a thread that no interrupt wakes.
      for (Watched rest = takeFirst(); rest != null; rest = takeFirst()) {
        breakOff(rest);
      }
    }
  }

  /** The deadlines of all others depend on this thread, so it survives whatever this throws. */
  private static void breakOff(Watched late) {
    try {
      late.breakOff();
    } catch (RuntimeException | Error e) {
      LOG.log(Level.ERROR, "a bug: what was late is not broken off", e);
    }
  }

  /** Waits for the next one that is late. */
  private synchronized Watched takeLate() throws InterruptedException {
    while (true) {
      long now = System.nanoTime();
      Watched soonest = end.later;
      if (!soonest.equals(end) && soonest.deadlineNanos - now <= 0) {
        return requireNonNull(takeFirst());
      }
      wakesAtNanos = soonest.equals(end) ? now + FAR_NANOS : soonest.deadlineNanos;
      // Rounded up, so that it does not wake too soon and find nothing late.
      wait((wakesAtNanos - now + 999_999) / 1_000_000);
    }
  }

  private synchronized @Nullable Watched takeFirst() {
    Watched taken = end.later;
    if (taken.equals(end)) {
      return null;
    }
    unlink(taken);
    taken.isLate = true;
    return taken;
  }

  private static void unlink(Watched watched) {
    watched.earlier.later = watched.later;
    watched.later.earlier = watched.earlier;
    watched.earlier = watched;
    watched.later = watched;
    watched.isListed = false;
  }
}
