package lab.executors;

import java.time.Duration;
import java.util.List;
import lab.contract.BadValueException;
import lab.contract.IntOption;

/**
 * One measurement to make.
 *
 * @param poolSize platform threads of the fixed pool; virtual threads have no use for it
 */
record Plan(ExecutorKind executor, int tasks, Duration sleep, int poolSize) {
  static final IntOption TASKS = new IntOption("tasks", 10_000, 1, 1_000_000);
  static final IntOption SLEEP_MS = new IntOption("sleep_ms", 100, 1, 60_000);
  static final IntOption POOL_SIZE = new IntOption("pool_size", 200, 1, 20_000);

  /**
   * Reads {@code executor tasks sleep_ms pool_size}.
   *
   * @throws BadValueException naming the first that is missing, too many or not allowed
   */
  static Plan parse(List<String> words) throws BadValueException {
    if (words.size() != 4) {
      throw new BadValueException(
          "expected the four words executor tasks sleep_ms pool_size, got " + words);
    }
    return new Plan(
        ExecutorKind.parse(words.get(0)),
        TASKS.parse(words.get(1)),
        Duration.ofMillis(SLEEP_MS.parse(words.get(2))),
        POOL_SIZE.parse(words.get(3)));
  }

  /** Returns what {@link #parse} reads. */
  List<String> words() {
    return List.of(
        executor.label(),
        Integer.toString(tasks),
        Long.toString(sleep.toMillis()),
        Integer.toString(poolSize));
  }

  /** Returns the least time that the tasks can take. */
  Duration bound() {
    return executor.bound(tasks, sleep, poolSize);
  }
}
