package lab.conformance;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Starts the packaged server as a child process, as the image's start script does: for models that
 * are built ahead of time, or that a JVM can have one of only. Its tests run after packaging.
 *
 * @param jar the runnable jar, {@code target/app/server.jar}
 */
public record InItsOwnJvm(Path jar) implements Launcher {
  /** Archives of loaded classes that this JVM's tests have had written. */
  private static final Set<Path> WRITTEN = ConcurrentHashMap.newKeySet();

  @Override
  public RunningServer start(Map<String, String> environment) throws IOException {
    Path classes = jar.resolveSibling("../conformance.jsa").normalize();
    if (WRITTEN.add(classes)) {
      // Its end takes long, as it writes down the classes that it loaded; the others start from
      // that.
      launch(environment, "-XX:ArchiveClassesAtExit=" + classes).close();
    }
    return launch(environment, "-XX:SharedArchiveFile=" + classes);
  }

  private RunningServer launch(Map<String, String> environment, String archiveFlag)
      throws IOException {
    return ChildServer.start(environment, List.of(archiveFlag, "-jar", jar.toString()), 0);
  }
}
