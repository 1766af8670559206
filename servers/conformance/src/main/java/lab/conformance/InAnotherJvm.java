package lab.conformance;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Starts a model as a child process, of the classes that the tests run with: for settings that a
 * JVM can have once.
 *
 * @param main the model's main class
 * @param flags the JVM's, besides those of every child
 * @param descriptors most that the process may have open; 0 = as many as this one
 */
public record InAnotherJvm(Class<?> main, List<String> flags, int descriptors) implements Launcher {
  public InAnotherJvm(Class<?> main, List<String> flags) {
    this(main, flags, 0);
  }

  @Override
  public RunningServer start(Map<String, String> environment) throws IOException {
    List<String> arguments = new ArrayList<>(flags);
    arguments.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
    return ChildServer.start(environment, arguments, descriptors);
  }
}
