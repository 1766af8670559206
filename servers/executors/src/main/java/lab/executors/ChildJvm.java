package lab.executors;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * Starts {@link Measurement} in a JVM of its own, with this JVM's {@code java}.
 *
 * @param flags JVM flags, the same for every child
 * @param classPath jars; of folders no AOT cache can be made
 * @param caches the folder of the AOT caches, one for each executor: the latest training's
 */
record ChildJvm(List<String> flags, String classPath, Path caches) {
  /**
   * What a round may take before the child is ended: so many times its bound, and so long for each
   * task; and the grace, once. The driver waits a little longer (system/executors.py).
   */
  private static final int MOST_BOUNDS = 10;

  private static final Duration MOST_A_TASK = Duration.ofNanos(100_000);
  private static final Duration GRACE = Duration.ofSeconds(60);

  /** The status of a process that SIGKILL ended: 128 and the number of the signal. */
  private static final int KILLED = 137;

  /** The status of {@code -XX:+ExitOnOutOfMemoryError}. */
  private static final int HEAP_FULL = 3;

  /** As this JVM was started; the caches in the system's folder of temporary files. */
  static ChildJvm likeThisOne(List<String> flags) {
    return new ChildJvm(
        flags,
        System.getProperty("java.class.path"),
        Path.of(System.getProperty("java.io.tmpdir")));
  }

  /**
   * Measures once. Blocks until the child ended; no child outlives the call.
   *
   * @return the line the child printed
   * @throws IOException when the child could not be started, failed or took too long; the message
   *     is one line
   */
  String measure(Plan plan) throws IOException, InterruptedException {
    Path said = Files.createTempFile("measurement", ".out");
    Path complained = Files.createTempFile("measurement", ".err");
    Process child = null;
    try {
      child =
          new ProcessBuilder(command(plan))
              .redirectOutput(said.toFile())
              .redirectError(complained.toFile())
              .start();
      child.getOutputStream().close();
      Duration deadline = deadline(plan);
      if (!child.waitFor(deadline.toMillis(), TimeUnit.MILLISECONDS)) {
        throw new IOException("the JVM was ended after " + deadline.toSeconds() + " s");
      }
      if (child.exitValue() == KILLED) {
        throw new IOException(
            "the JVM was killed: its heap (-Xmx) and its threads (POOL=%d) most likely need more"
                    .formatted(plan.poolSize())
                + " than the container's memory (SERVER_MEMORY)");
      }
      if (child.exitValue() == HEAP_FULL) {
        throw new IOException(
            "the JVM's heap was full: %d tasks need a larger one (-Xmx in SERVER_JVM_FLAGS)"
                    .formatted(plan.tasks())
                + " and room for it (SERVER_MEMORY)");
      }
      // What the JVM itself says may come after it: that it wrote a cache.
      Optional<String> line = lines(said).filter(one -> one.startsWith("{")).findFirst();
      if (child.exitValue() != 0 || line.isEmpty()) {
        // Of a stack trace the first line tells, of a JVM's log the last.
        Optional<String> last = lines(said).reduce((_, next) -> next);
        String why = lines(complained).findFirst().or(() -> last).orElse("it said nothing");
        throw new IOException("the JVM ended with status %d: %s".formatted(child.exitValue(), why));
      }
      return line.get();
    } finally {
      if (child != null) {
        // A JVM that is trained starts another one, which writes the cache.
        child.descendants().forEach(ProcessHandle::destroyForcibly);
        child.destroyForcibly().waitFor();
      }
      Files.delete(said);
      Files.delete(complained);
    }
  }

  private static Duration deadline(Plan plan) {
    Duration round =
        plan.bound().multipliedBy(MOST_BOUNDS).plus(MOST_A_TASK.multipliedBy(plan.tasks()));
    return round.multipliedBy(plan.rounds() + 1L).plus(GRACE);
  }

  private List<String> command(Plan plan) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("--enable-preview");
    command.addAll(flags);
    command.addAll(plan.purpose().flags());
    command.addAll(plan.start().flags(caches.resolve(plan.executor().label() + ".aot")));
    command.addAll(List.of("-cp", classPath));
    command.add(Measurement.class.getName());
    command.addAll(plan.words());
    return command;
  }

  private static Stream<String> lines(Path file) throws IOException {
    return new String(Files.readAllBytes(file), StandardCharsets.UTF_8).strip().lines();
  }
}
