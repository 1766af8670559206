package lab.conformance;

import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import javax.management.MBeanServerConnection;
import lab.spec.BadValueException;

/** A server under test, wherever it runs. Its user is one thread. */
interface RunningServer extends AutoCloseable {
  /** Starts the model under test with these {@code LAB_*} settings, all that it has. */
  @FunctionalInterface
  interface Launcher {
    /** Returns the server when it takes requests. */
    RunningServer start(Map<String, String> environment) throws IOException, BadValueException;
  }

  int httpPort();

  int managementPort();

  /** The MXBeans of its JVM. The first call may take its time. */
  MBeanServerConnection mbeans() throws IOException;

  /** Waits until a promised restart happens; false when that takes too long. */
  boolean awaitRestart(Duration atMost) throws InterruptedException;

  /** Stops it as an operator would, and waits for that. */
  @Override
  void close() throws IOException;
}
