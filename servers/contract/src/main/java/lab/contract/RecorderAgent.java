package lab.contract;

import java.io.IOException;

/**
 * Makes a JVM recordable that is no server of the lab: a Java agent with the recording calls of the
 * management port and nothing else.
 *
 * <pre>-javaagent:/jmx/lab-recorder.jar=9405</pre>
 *
 * It names no class of a module that a JVM may lack: such a JVM would not start.
 */
public final class RecorderAgent {
  private RecorderAgent() {}

  /**
   * Called by the JVM before its main class. What goes wrong costs the recordings, not the service.
   *
   * @param port where the calls are answered
   */
  public static void premain(String port) {
    try {
      RecorderPort.open(Integer.parseInt(port));
    } catch (IOException | RuntimeException | LinkageError e) {
      System.err.println("lab-recorder: this JVM cannot be recorded: " + e);
    }
  }
}
