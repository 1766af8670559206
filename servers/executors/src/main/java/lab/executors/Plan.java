package lab.executors;

import java.time.Duration;
import java.util.List;
import lab.contract.BadValueException;
import lab.contract.IntOption;

/**
 * One measurement to make.
 *
 * @param poolSize platform threads of the fixed pool; virtual threads have no use for it
 * @param rounds identical rounds that run before the measured one; more than 0 only for a warm JVM
 */
record Plan(
    Start start,
    Purpose purpose,
    ExecutorKind executor,
    int tasks,
    Duration sleep,
    int poolSize,
    int rounds) {
  static final IntOption TASKS = new IntOption("tasks", 10_000, 1, 1_000_000);
  static final IntOption SLEEP_MS = new IntOption("sleep_ms", 100, 1, 60_000);
  static final IntOption POOL_SIZE = new IntOption("pool_size", 200, 1, 20_000);
  static final IntOption ROUNDS = new IntOption("rounds", 0, 0, 1000);

  /**
   * Reads {@code start purpose executor tasks sleep_ms pool_size rounds}.
   *
   * @throws BadValueException naming the first that is missing, too many or not allowed
   */
  static Plan parse(List<String> words) throws BadValueException {
    if (words.size() != 7) {
      throw new BadValueException(
          "expected the seven words start purpose executor tasks sleep_ms pool_size rounds, got "
              + words);
    }
    Plan plan =
        new Plan(
            Word.parse("start", Start.values(), words.get(0)),
            Word.parse("purpose", Purpose.values(), words.get(1)),
            Word.parse("executor", ExecutorKind.values(), words.get(2)),
            TASKS.parse(words.get(3)),
            Duration.ofMillis(SLEEP_MS.parse(words.get(4))),
            POOL_SIZE.parse(words.get(5)),
            ROUNDS.parse(words.get(6)));
    if (plan.start == Start.WARM != plan.rounds > 0) {
      throw new BadValueException("rounds before the measured one make a JVM warm, and no other");
    }
    return plan;
  }

  /** Returns what {@link #parse} reads. */
  List<String> words() {
    return List.of(
        start.label(),
        purpose.label(),
        executor.label(),
        Integer.toString(tasks),
        Long.toString(sleep.toMillis()),
        Integer.toString(poolSize),
        Integer.toString(rounds));
  }

  /** Returns the least time that the tasks of one round can take. */
  Duration bound() {
    return executor.bound(tasks, sleep, poolSize);
  }
}
