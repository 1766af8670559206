package lab.conformance;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.tools.attach.AttachNotSupportedException;
import com.sun.tools.attach.VirtualMachine;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.management.MBeanServerConnection;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;
import org.jspecify.annotations.Nullable;

/** A server in a process of its own. */
final class ChildServer implements RunningServer {
  /** What only a broken server exceeds: it is killed after this, and the test fails. */
  private static final Duration STOP_AT_MOST = Duration.ofSeconds(60);

  /** Short-lived and seldom busy: what starts soonest. */
  private static final List<String> FLAGS =
      List.of(
          "--enable-preview",
          "-XX:TieredStopAtLevel=1",
          "-XX:+UseSerialGC",
          "-Xshare:auto",
          "-Xmx256m");

  private static final Pattern PORTS =
      Pattern.compile(".*: traffic on (\\d+), management on (\\d+)");

  private final Process process;
  private final int httpPort;
  private final int managementPort;
  private final StringBuilder said;
  private final Thread reader;
  private @Nullable JMXConnector jmx;

  /**
   * @param log read to its end from now on, or the process would wait for its reader
   * @param said what has been read of it
   */
  private ChildServer(
      Process process, BufferedReader log, StringBuilder said, int httpPort, int managementPort) {
    this.process = process;
    this.said = said;
    this.httpPort = httpPort;
    this.managementPort = managementPort;
    this.reader = Thread.ofVirtual().name("child-log").start(() -> read(log));
  }

  /**
   * Starts a server's process and returns when it takes requests.
   *
   * @param environment the {@code LAB_*} settings, all that it has
   * @param arguments of {@code java}
   * @param descriptors most that the process may have open; 0 = as many as this one
   */
  static ChildServer start(Map<String, String> environment, List<String> arguments, int descriptors)
      throws IOException {
    List<String> command = new ArrayList<>();
    if (descriptors > 0) {
      command.addAll(List.of("bash", "-c", "ulimit -n " + descriptors + " && exec \"$@\"", "bash"));
    }
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(FLAGS);
    command.addAll(arguments);
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

  @Override
  public int httpPort() {
    return httpPort;
  }

  @Override
  public int managementPort() {
    return managementPort;
  }

  @Override
  public long pid() {
    return process.pid();
  }

  @Override
  public MBeanServerConnection mbeans() throws IOException {
    JMXConnector connector = jmx;
    if (connector == null) {
      connector = connect();
      jmx = connector;
    }
    return connector.getMBeanServerConnection();
  }

  @Override
  public boolean awaitRestart(Duration atMost) throws InterruptedException {
    return process.waitFor(atMost);
  }

  @Override
  public void close() throws IOException {
    if (jmx != null) {
      jmx.close();
    }
    // Not Process.destroy, which also closes the log that it is still to write.
    var _ = process.toHandle().destroy();
    try {
      if (!process.waitFor(STOP_AT_MOST)) {
        process.destroyForcibly().waitFor();
        throw new IOException("killed, as it did not stop; it said: " + log());
      }
      reader.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      process.destroyForcibly();
    }
  }

  @SuppressWarnings("BanJNDI") // The other end is our own child, found by its process id.
  private JMXConnector connect() throws IOException {
    try {
      VirtualMachine machine = VirtualMachine.attach(Long.toString(process.pid()));
      try {
        return JMXConnectorFactory.connect(new JMXServiceURL(machine.startLocalManagementAgent()));
      } finally {
        machine.detach();
      }
    } catch (AttachNotSupportedException e) {
      throw new IOException("cannot attach to " + process.pid(), e);
    }
  }

  private String log() {
    synchronized (said) {
      return said.toString();
    }
  }

  private void read(BufferedReader log) {
    try (log) {
      for (String line = log.readLine(); line != null; line = log.readLine()) {
        synchronized (said) {
          said.append(line).append('\n');
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
