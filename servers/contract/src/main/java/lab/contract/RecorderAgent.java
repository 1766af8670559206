package lab.contract;

import java.io.IOException;

/**
 * A Java agent for a JVM that is no server of the lab. It answers the recording calls of the
 * management port, and nothing else.
 *
 * <pre>-javaagent:/jmx/lab-recorder.jar=9405</pre>
 *
 * This class names no class of jdk.jfr or jdk.httpserver. A JVM without these modules would not
 * start with an agent that does.
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
