package lab.contract.test;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Starts the packaged server as a child process, as the image's start script does: for models that
 * are built ahead of time, or that a JVM can have one of only. Its tests run after packaging.
 *
 * @param jar the runnable jar, {@code target/app/server.jar}
 */
public record InItsOwnJvm(Path jar) implements Launcher {
  private static final Pattern PORTS =
      Pattern.compile(".*: traffic on (\\d+), management on (\\d+)");

  /** Short-lived and seldom busy: what starts soonest. */
  private static final List<String> FLAGS =
      List.of(
          "--enable-preview",
          "-XX:TieredStopAtLevel=1",
          "-XX:+UseSerialGC",
          "-Xshare:auto",
          "-Xmx256m");

  /** Archives of loaded classes that this JVM's tests have had written. */
  private static final Set<Path> WRITTEN = ConcurrentHashMap.newKeySet();

  @Override
  public RunningServer start(Map<String, String> environment) throws IOException {
    Path classes = jar.resolveSibling("../contract-test.jsa").normalize();
    if (WRITTEN.add(classes)) {
      // Its end takes long, as it writes down the classes that it loaded; the others start from
      // that.
      launch(environment, "-XX:ArchiveClassesAtExit=" + classes).close();
    }
    return launch(environment, "-XX:SharedArchiveFile=" + classes);
  }

  private RunningServer launch(Map<String, String> environment, String archiveFlag)
      throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(FLAGS);
    command.addAll(List.of(archiveFlag, "-jar", jar.toString()));
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().keySet().removeIf(name -> name.startsWith("LAB_"));
    builder.environment().putAll(environment);
    Process process = builder.start();
    BufferedReader log = new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8));
    StringBuilder said = new StringBuilder();
    for (String line = log.readLine(); line != null; line = log.readLine()) {
      said.append(line).append('\n');
      Matcher ports = PORTS.matcher(line);
      if (ports.matches()) {
        return new ChildServer(
            process, log, said, Integer.parseInt(ports.group(1)), Integer.parseInt(ports.group(2)));
      }
    }
    throw new IOException("the server did not start: " + said);
  }
}
