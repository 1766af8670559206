package lab.recorder;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantLock;
import jdk.jfr.FlightRecorder;
import jdk.jfr.Recording;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class LockWatchTest {
  private static final long HELD_MS = 100;

  private final Object monitor = new Object();
  private final ReentrantLock lock = new ReentrantLock();
  private final LockWatch locks = new LockWatch();
  private volatile int entered;

  @AfterEach
  void end() {
    locks.close();
  }

  @Test
  void aPlatformThreadsWaitIsCountedByTheLineThatWaits() throws Exception {
    locks.watch(10);
    waitForMonitor();
    waitForLock();
    assertThat(awaited("monitor", "enterMonitor", "platform")).isBetween(0.1, 60.0);
    assertThat(awaited("lock", "takeLock", "platform")).isBetween(0.1, 60.0);
  }

  @Test
  void aShorterWaitThanWasAskedForIsNotCounted() throws Exception {
    locks.watch(60_000);
    waitForMonitor();
    locks.watch(10);
    waitForLock();
    assertThat(awaited("lock", "takeLock", "platform")).isPositive();
    assertThat(locks.getWaitedSeconds().toString()).doesNotContain("enterMonitor");
  }

  /** JDK 25 has no event for it: whoever waits while somebody looks is counted. */
  @Test
  void aVirtualThreadThatWaitsIsCountedWhileItWaits() throws Exception {
    lock.lock();
    try {
      synchronized (monitor) {
        for (int i = 0; i < 3; i++) {
          parked(Thread.ofVirtual().unstarted(this::takeLock), Thread.State.WAITING);
        }
        parked(Thread.ofVirtual().unstarted(this::enterMonitor), Thread.State.BLOCKED);
        long begun = System.nanoTime();
        locks.watch(10);
        // A look adds one thread after the other.
        double ofThree = awaited("lock", "takeLock", "virtual", 3.0);
        double ofOne = awaited("monitor", "enterMonitor", "virtual");
        double elapsed = (System.nanoTime() - begun) / 1e9;
        // A look stands for the time since the one before: 1 s or more.
        assertThat(ofThree).isBetween(3.0, 3 * elapsed);
        assertThat(ofOne).isBetween(1.0, elapsed);
      }
    } finally {
      lock.unlock();
    }
  }

  @Test
  void whoWaitsForWorkOrAPermitWaitsForNoLock() throws Exception {
    var latch = new CountDownLatch(1);
    var permits = new Semaphore(0);
    var queue = new LinkedBlockingQueue<Integer>();
    Runnable[] idles = {
      () -> idleQuietly(latch::await),
      () -> idleQuietly(permits::acquire),
      () -> idleQuietly(() -> entered = queue.take())
    };
    locks.watch(10);
    lock.lock();
    try {
      for (Runnable idle : idles) {
        parked(Thread.ofPlatform().unstarted(idle), Thread.State.WAITING);
        parked(Thread.ofVirtual().unstarted(idle), Thread.State.WAITING);
      }
      parked(Thread.ofVirtual().unstarted(this::takeLock), Thread.State.WAITING);
      assertThat(awaited("lock", "takeLock", "virtual")).isPositive();
    } finally {
      lock.unlock();
    }
    latch.countDown();
    permits.release(2);
    queue.add(1);
    queue.add(2);
    // What is told of the second of these was asked for after all that ended before the first.
    waitForMonitor();
    assertThat(awaited("monitor", "enterMonitor", "platform")).isPositive();
    waitForLock();
    assertThat(awaited("lock", "takeLock", "platform")).isPositive();
    assertThat(locks.getWaitedSeconds().toString())
        .doesNotContain("idleQuietly")
        .doesNotContain("lambda");
  }

  @Test
  void withoutAThresholdNothingIsTold() throws Exception {
    assertThat(locks.getWaitedSeconds()).isEmpty();
    locks.watch(10);
    waitForMonitor();
    assertThat(awaited("monitor", "enterMonitor", "platform")).isPositive();
    locks.watch(0);
    assertThat(locks.getWaitedSeconds()).isEmpty();
  }

  /** As where somebody stops all recordings of the JVM. */
  @Test
  void watchingEndsWithTheStreamOfEventsAndBeginsAnew() throws Exception {
    List<Recording> before = FlightRecorder.getFlightRecorder().getRecordings();
    locks.watch(10);
    List<Recording> ours = new ArrayList<>(FlightRecorder.getFlightRecorder().getRecordings());
    ours.removeAll(before);
    assertThat(ours).hasSize(1);
    ours.getFirst().stop();
    long patience = System.nanoTime() + TimeUnit.MINUTES.toNanos(2);
    while (locks.getThresholdMs() > 0) {
      assertThat(System.nanoTime()).isLessThan(patience);
      Thread.sleep(20);
    }
    locks.watch(10);
    waitForMonitor();
    assertThat(awaited("monitor", "enterMonitor", "platform")).isPositive();
    assertThat(locks.getThresholdMs()).isEqualTo(10);
  }

  @Test
  void sitesBeyondTheMostAreOne() {
    Map<LockWatch.Wait, LongAdder> counted = new ConcurrentHashMap<>();
    for (int turn = 0; turn < 2; turn++) {
      for (int site = 0; site < 40; site++) {
        LockWatch.add(counted, new LockWatch.Wait("lock", "platform", "site" + site), 1);
      }
    }
    assertThat(counted).hasSize(31);
    var other = new LockWatch.Wait("lock", "platform", LockWatch.OTHER_SITES);
    assertThat(counted.getOrDefault(other, new LongAdder()).sum()).isEqualTo(20);
    assertThat(counted.values().stream().mapToLong(LongAdder::sum).sum()).isEqualTo(80);
  }

  /** Seconds that were counted, once any were. */
  private double awaited(String kind, String method, String threads) throws InterruptedException {
    return awaited(kind, method, threads, 0.0);
  }

  private double awaited(String kind, String method, String threads, double least)
      throws InterruptedException {
    String site = "%s %s %s.%s:".formatted(kind, threads, getClass().getName(), method);
    long patience = System.nanoTime() + TimeUnit.MINUTES.toNanos(2);
    while (true) {
      Map<String, Double> waited = locks.getWaitedSeconds();
      for (Map.Entry<String, Double> one : waited.entrySet()) {
        if (one.getKey().startsWith(site) && one.getValue() >= least) {
          return one.getValue();
        }
      }
      assertThat(System.nanoTime()).as(waited.toString()).isLessThan(patience);
      Thread.sleep(20);
    }
  }

  private void waitForMonitor() throws InterruptedException {
    Thread waiting = Thread.ofPlatform().unstarted(this::enterMonitor);
    synchronized (monitor) {
      parked(waiting, Thread.State.BLOCKED);
      Thread.sleep(HELD_MS);
    }
    assertThat(waiting.join(Duration.ofMinutes(1))).isTrue();
    assertThat(entered).isPositive();
  }

  private void waitForLock() throws InterruptedException {
    Thread waiting = Thread.ofPlatform().unstarted(this::takeLock);
    lock.lock();
    try {
      parked(waiting, Thread.State.WAITING);
      Thread.sleep(HELD_MS);
    } finally {
      lock.unlock();
    }
    assertThat(waiting.join(Duration.ofMinutes(1))).isTrue();
    assertThat(entered).isPositive();
  }

  /** Starts the thread, which comes to this state. */
  private static void parked(Thread thread, Thread.State state) throws InterruptedException {
    thread.start();
    while (thread.getState() != state) {
      Thread.sleep(1);
    }
  }

  private void enterMonitor() {
    synchronized (monitor) {
      entered = 1;
    }
  }

  private void takeLock() {
    lock.lock();
    try {
      entered = 2;
    } finally {
      lock.unlock();
    }
  }

  private interface Idle {
    void await() throws InterruptedException;
  }

  private static void idleQuietly(Idle idle) {
    try {
      idle.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
