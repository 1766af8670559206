package lab.conformance;

import java.io.IOException;
import java.util.Map;
import lab.spec.BadValueException;

/** Starts the model under test; see {@link InThisJvm} and {@link InItsOwnJvm}. */
@FunctionalInterface
public interface Launcher {
  /**
   * Returns the server when it takes requests.
   *
   * @param environment the {@code LAB_*} settings, all that it has
   */
  RunningServer start(Map<String, String> environment) throws IOException, BadValueException;
}
