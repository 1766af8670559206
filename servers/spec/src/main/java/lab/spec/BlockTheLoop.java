package lab.spec;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.function.LongSupplier;

/** Whether a wait blocks an event loop's thread: the mistake that a loop does not forgive. */
public enum BlockTheLoop {
  /** A wait is a timer. */
  NO("false", false),
  /** The thread sleeps, and the CPU is free for others. */
  SLEEP("true", true),
  /** The thread computes for as much CPU time as the wait is long. */
  SPIN("spin", "spin");

  /** Some 50 µs. */
  private static final int WORK_BETWEEN_LOOKS = 5_000;

  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  private final String word;

  @SuppressWarnings("ImmutableEnumChecker") // A Boolean or a String.
  private final Object json;

  BlockTheLoop(String word, Object json) {
    this.word = word;
    this.json = json;
  }

  /** The value of a variable, named in the refusal of any other word. */
  static BlockTheLoop parse(String variable, String text) throws BadValueException {
    return Arrays.stream(values())
        .filter(each -> each.word.equals(text))
        .findFirst()
        .orElseThrow(
            () ->
                new BadValueException(
                    "%s must be false, true or spin, got '%s'".formatted(variable, text)));
  }

  public Object json() {
    return json;
  }

  /** Whether waits block: they are {@link #hold} then, and not timers. */
  public boolean blocks() {
    return this != NO;
  }

  /** Holds up the calling thread, a loop's: nobody else is served meanwhile. */
  public void hold(long millis) {
    if (this == SPIN) {
      spin(millis, THREADS::getCurrentThreadCpuTime);
      return;
    }
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Computes for so long by this thread's CPU time; a look at it is a system call, so few. */
  static void spin(long millis, LongSupplier cpuNanos) {
    long end = cpuNanos.getAsLong() + millis * 1_000_000;
    long sum = 0;
    while (cpuNanos.getAsLong() < end) {
      sum += Primes.sumUpTo(WORK_BETWEEN_LOOKS);
    }
    if (sum == 1) {
      // Never. The compiler does not know, and cannot leave the work out.
      Thread.onSpinWait();
    }
  }
}
