package lab.conformance;

import java.io.IOException;
import java.time.Duration;
import javax.management.MBeanServerConnection;

/** A server under test, wherever it runs. Its user is one thread. */
public interface RunningServer extends AutoCloseable {
  int httpPort();

  int managementPort();

  /** The process it runs in. */
  long pid();

  /** The MXBeans of its JVM. The first call may take its time. */
  MBeanServerConnection mbeans() throws IOException;

  /** Waits until it has been told to restart and does; false when that takes too long. */
  boolean awaitRestart(Duration atMost) throws InterruptedException;

  /** Stops it as an operator would, and waits for that. */
  @Override
  void close() throws IOException;
}
