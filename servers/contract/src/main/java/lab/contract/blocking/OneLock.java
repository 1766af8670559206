package lab.contract.blocking;

import java.util.concurrent.locks.ReentrantLock;
import lab.contract.Knobs;
import lab.contract.Settings;

/**
 * A fault to be found: one lock that every request holds for {@code lock_ms}, so that they take
 * turns. Off by default. No metric of its own tells of it, as none tells of the locks in real
 * services.
 */
final class OneLock {
  private final ReentrantLock lock = new ReentrantLock(true);
  private volatile int heldMs = Settings.LOCK_MS.fallback();

  OneLock(Knobs knobs) {
    knobs.add(Settings.LOCK_MS, () -> heldMs, ms -> heldMs = ms);
  }

  /** Waits for the lock, and holds it, on the calling thread. */
  void hold() throws InterruptedException {
    int ms = heldMs;
    if (ms == 0) {
      return;
    }
    lock.lockInterruptibly();
    try {
      Thread.sleep(ms);
    } finally {
      lock.unlock();
    }
  }
}
