package lab.recorder;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.regex.Pattern;
import jdk.jfr.FlightRecorder;
import lab.spec.Answer;
import lab.spec.BadValueException;
import lab.spec.Primes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RecorderTest {
  private static final Map<String, Long> A_MINUTE = Map.of("seconds", 60L);
  private static final Pattern STACK = Pattern.compile("\"([^\"]*)\":(\\d+)[,}]");

  private final Recorder recorder = new Recorder();
  private final Object monitor = new Object();
  private final ReentrantLock lock = new ReentrantLock();
  private volatile long result;

  @AfterEach
  void end() {
    recorder.close();
  }

  @Test
  void aSecondRecordingIsRefusedAndTheFirstGoesOn() throws Exception {
    assertThat(recorder.start(Recorder.CPU, A_MINUTE).status()).isEqualTo(200);
    assertThat(recorder.start(Recorder.LOCK, A_MINUTE).status()).isEqualTo(409);
    assertThat(text(recorder.end(Map.of()))).startsWith("{\"events\":[\"jdk.CPUTimeSample\"]");
    assertThat(recorder.end(Map.of()).status()).isEqualTo(409);
  }

  @Test
  void aRecordingEndsByItselfAndMakesRoomForTheNext() throws Exception {
    assertThat(recorder.start(Recorder.ALLOC, Map.of("seconds", 1L)).status()).isEqualTo(200);
    long patience = System.nanoTime() + TimeUnit.MINUTES.toNanos(2);
    while (recorder.start(Recorder.LOCK, A_MINUTE).status() == 409) {
      assertThat(System.nanoTime()).isLessThan(patience);
      Thread.sleep(50);
    }
    assertThat(text(recorder.end(Map.of()))).contains("jdk.JavaMonitorEnter");
  }

  /** As where somebody stops all recordings of the JVM. */
  @Test
  void aRecordingThatSomebodyStoppedIsNoRecordingOfTheWindow() throws Exception {
    assertThat(recorder.start(Recorder.LOCK, A_MINUTE).status()).isEqualTo(200);
    FlightRecorder.getFlightRecorder().getRecordings().getLast().stop();
    Map<String, Long> later = Map.of("from_ms", 0L, "to_ms", System.currentTimeMillis() + 1000);
    assertThat(recorder.end(later).status()).isEqualTo(409);
  }

  @ParameterizedTest
  @ValueSource(longs = {0, -1, 3601})
  void aRecordingWithoutAnEndIsRefused(long seconds) {
    assertThatThrownBy(() -> recorder.start(Recorder.CPU, Map.of("seconds", seconds)))
        .isInstanceOf(BadValueException.class)
        .hasMessageContaining("seconds must be a whole number from 1 to 3600");
  }

  /**
   * The share that samples see, beside the share that the thread's own CPU clock tells. 1,000
   * samples (a kernel of 250 ticks a second) of a half have a standard deviation of 1.6 points.
   */
  @Test
  void theShareOfAMethodIsThatOfItsCpuTime() throws Exception {
    String started = text(recorder.start(Recorder.CPU, A_MINUTE));
    assumeThat(started).contains("jdk.CPUTimeSample");
    double expected = plantInTurns();
    String recorded = text(recorder.end(Map.of()));
    long all = weight(recorded, "RecorderTest.plantInTurns:");
    assertThat(all).isGreaterThan(200);
    assertThat((double) weight(recorded, "RecorderTest.plant:") / all)
        .isCloseTo(expected, within(0.06));
    assertThat(recorded).contains("\"whole\":true");
    assertThat(result).isNotZero();
  }

  /** The planted method's share of this one's CPU time, by the thread's clock. */
  private double plantInTurns() {
    var random = new Random(19);
    long begun = cpuNanos();
    long planted = 0;
    while (cpuNanos() - begun < TimeUnit.SECONDS.toNanos(4)) {
      long before = cpuNanos();
      plant(32_000 + random.nextInt(32_000));
      planted += cpuNanos() - before;
      other(32_000 + random.nextInt(32_000));
    }
    return (double) planted / (cpuNanos() - begun);
  }

  @Test
  void whatEndedOutsideOfTheWindowIsLeftOut() throws Exception {
    assertThat(recorder.start(Recorder.CPU, A_MINUTE).status()).isEqualTo(200);
    long begun = cpuNanos();
    while (cpuNanos() - begun < TimeUnit.MILLISECONDS.toNanos(300)) {
      plant(10_000);
    }
    long over = System.currentTimeMillis() + TimeUnit.HOURS.toMillis(1);
    assertThat(text(recorder.end(Map.of("from_ms", over))))
        .contains("\"samples\":0,\"stacks\":{},");
  }

  @Test
  void aWaitForAMonitorAndForALockNamesTheCodeThatWaits() throws Exception {
    assertThat(recorder.start(Recorder.LOCK, A_MINUTE).status()).isEqualTo(200);
    whileHeld(this::enterMonitor, true);
    whileHeld(this::takeLock, false);
    String recorded = text(recorder.end(Map.of()));
    assertThat(recorded)
        .containsPattern("\"\\[monitor\\];[^\"]*\\.RecorderTest\\.enterMonitor:\\d+\"")
        .containsPattern("\"\\[lock\\];[^\"]*\\.RecorderTest\\.takeLock:\\d+\"");
    // Both waited for about as long as the holder slept.
    assertThat(weight(recorded, "RecorderTest.takeLock:"))
        .isGreaterThan(TimeUnit.MILLISECONDS.toNanos(50));
  }

  /** A thread that waits for its next task is not one that waits for a lock. */
  @Test
  void anIdleThreadWaitsForNoLock() throws Exception {
    assertThat(recorder.start(Recorder.LOCK, A_MINUTE).status()).isEqualTo(200);
    var never = new CountDownLatch(1);
    Thread idle = Thread.ofPlatform().start(() -> awaitQuietly(never));
    idle.join(200);
    never.countDown();
    idle.join();
    assertThat(text(recorder.end(Map.of()))).doesNotContain("awaitQuietly");
  }

  /** Runs the task in a thread that has to wait for what this one holds for 100 ms. */
  private void whileHeld(Runnable task, boolean byMonitor) throws InterruptedException {
    Thread waiting = Thread.ofPlatform().unstarted(task);
    if (byMonitor) {
      synchronized (monitor) {
        holdFor(waiting, Thread.State.BLOCKED);
      }
    } else {
      lock.lock();
      try {
        holdFor(waiting, Thread.State.WAITING);
      } finally {
        lock.unlock();
      }
    }
    waiting.join();
  }

  private static void holdFor(Thread waiting, Thread.State state) throws InterruptedException {
    waiting.start();
    while (waiting.getState() != state) {
      Thread.sleep(1);
    }
    Thread.sleep(100);
  }

  private void enterMonitor() {
    synchronized (monitor) {
      result = 1;
    }
  }

  private void takeLock() {
    lock.lock();
    try {
      result = 1;
    } finally {
      lock.unlock();
    }
  }

  private static void awaitQuietly(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void plant(int limit) {
    result = Primes.sumUpTo(limit);
  }

  private void other(int turns) {
    long sum = 0;
    for (int turn = 0; turn < 40 * turns; turn++) {
      sum += turn ^ (sum << 1);
    }
    result = sum;
  }

  private static long cpuNanos() {
    return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
  }

  /** The weight of all stacks that hold this text. */
  private static long weight(String recorded, String text) {
    return STACK
        .matcher(recorded.substring(recorded.indexOf("\"stacks\":{") + 10))
        .results()
        .filter(stack -> stack.group(1).contains(text))
        .mapToLong(stack -> Long.parseLong(stack.group(2)))
        .sum();
  }

  private static String text(Answer answer) {
    assertThat(answer.status()).isEqualTo(200);
    return new String(answer.body(), UTF_8);
  }
}
