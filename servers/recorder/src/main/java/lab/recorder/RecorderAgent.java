package lab.recorder;

import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.file.Path;
import java.security.CodeSource;
import javax.management.JMException;
import javax.management.ObjectName;
import lab.spec.BadValueException;

/**
 * A Java agent for a JVM that is no server of the lab. It answers the recording calls of the
 * management port, and watches locks where it is told to: a bean shows what it counts.
 *
 * <pre>-javaagent:/jmx/lab-recorder.jar=9405
 * -javaagent:/jmx/lab-recorder.jar=127.0.0.1:9405,lock_watch_ms=10</pre>
 *
 * <p>A recording needs the token whose sum is in the file {@code lab-recorder.sum} beside the jar.
 *
 * <p>This class names no class of jdk.jfr or jdk.httpserver. A JVM without these modules would not
 * start with an agent that does.
 */
public final class RecorderAgent {
  private RecorderAgent() {}

  /** Called by the JVM before its main class. What goes wrong costs the service nothing. */
  public static void premain(String words) {
    // Without any words it is null.
    String[] parts = String.valueOf(words).split(",lock_watch_ms=", 2);
    try {
      RecorderPort.open(address(parts[0]), sum());
    } catch (IOException | RuntimeException | LinkageError e) {
      System.err.println("lab-recorder: this JVM cannot be recorded: " + e);
    }
    try {
      LockWatch locks = new LockWatch();
      locks.watch(parts.length == 1 ? 0 : LockWatch.THRESHOLD_MS.parse(parts[1]));
      ManagementFactory.getPlatformMBeanServer()
          .registerMBean(locks, new ObjectName("lab", "type", LockWatch.BEAN));
    } catch (BadValueException | JMException | RuntimeException | LinkageError e) {
      System.err.println("lab-recorder: no lock is watched in this JVM: " + e);
    }
  }

  static InetSocketAddress address(String word) {
    int colon = word.lastIndexOf(':');
    int port = Integer.parseInt(word.substring(colon + 1));
    return colon < 0
        ? new InetSocketAddress(port)
        : new InetSocketAddress(word.substring(0, colon), port);
  }

  private static Path sum() {
    CodeSource jar = requireNonNull(RecorderAgent.class.getProtectionDomain().getCodeSource());
    return Path.of(URI.create(jar.getLocation().toString())).resolveSibling("lab-recorder.sum");
  }
}
