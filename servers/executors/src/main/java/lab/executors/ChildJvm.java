package lab.executors;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Starts {@link Measurement} in a JVM of its own: this JVM's {@code java} and class path.
 *
 * @param flags JVM flags, the same for every child
 */
record ChildJvm(List<String> flags) {
  /** A child may take this many times its bound, and the grace on top, before it is ended. */
  private static final int MOST_BOUNDS = 10;

  private static final Duration GRACE = Duration.ofSeconds(30);

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
      Duration deadline = plan.bound().multipliedBy(MOST_BOUNDS).plus(GRACE);
      if (!child.waitFor(deadline.toMillis(), TimeUnit.MILLISECONDS)) {
        throw new IOException("the JVM was ended after " + deadline.toSeconds() + " s");
      }
      String line = lastLine(said);
      if (child.exitValue() != 0 || !line.startsWith("{")) {
        String why = lastLine(complained);
        throw new IOException(
            "the JVM ended with status %d: %s"
                .formatted(child.exitValue(), why.isEmpty() ? line : why));
      }
      return line;
    } finally {
      if (child != null) {
        child.destroyForcibly().waitFor();
      }
      Files.delete(said);
      Files.delete(complained);
    }
  }

  private List<String> command(Plan plan) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("--enable-preview");
    command.addAll(flags);
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    command.add(Measurement.class.getName());
    command.addAll(plan.words());
    return command;
  }

  private static String lastLine(Path file) throws IOException {
    List<String> lines =
        new String(Files.readAllBytes(file), StandardCharsets.UTF_8).strip().lines().toList();
    return lines.isEmpty() ? "" : lines.getLast();
  }
}
