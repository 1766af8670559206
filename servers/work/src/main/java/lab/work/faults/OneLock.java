package lab.work.faults;

import java.util.concurrent.locks.ReentrantLock;
import lab.shell.Knobs;
import lab.spec.Settings;

/** A fault to be found: all requests hold one lock for {@code lock_ms}. Off by default. */
public final class OneLock {
  private final ReentrantLock lock = new ReentrantLock(true);
  private volatile int heldMs = Settings.LOCK_MS.fallback();

  public OneLock(Knobs knobs) {
    knobs.add(Settings.LOCK_MS, () -> heldMs, ms -> heldMs = ms);
  }

  public void hold() throws InterruptedException {
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
