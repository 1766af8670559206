package lab.conformance;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.tools.attach.AttachNotSupportedException;
import com.sun.tools.attach.VirtualMachine;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.management.MBeanServerConnection;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;
import org.jspecify.annotations.Nullable;

/** A server in a process of its own. */
record ChildServer(
    Process process, int httpPort, int managementPort, AtomicReference<@Nullable JMXConnector> jmx)
    implements RunningServer {
  /** What starts soonest; and the JDK's HTTP server looks at idle clients every 10 s otherwise. */
  private static final List<String> FLAGS =
      List.of(
          "--enable-preview",
          "-XX:TieredStopAtLevel=1",
          "-XX:+UseSerialGC",
          "-Xmx256m",
          "-Dsun.net.httpserver.clockTick=100");

  private static final Pattern PORTS =
      Pattern.compile(".*: traffic on (\\d+), management on (\\d+)");

  /** A packaged server, as the image's start script starts it. Its tests run after packaging. */
  static Launcher ofJar(Path jar) {
    return environment -> start(environment, "exec \"$@\"", "-jar", jar.toString());
  }

  /** A server of the classes that the tests run with, and at most so many descriptors. */
  static Launcher ofMain(String main, int descriptors) {
    String script = "ulimit -n " + descriptors + " && exec \"$@\"";
    String classPath = System.getProperty("java.class.path");
    return environment -> start(environment, script, "-XX:-MaxFDLimit", "-cp", classPath, main);
  }

  private static ChildServer start(
      Map<String, String> environment, String script, String... arguments) throws IOException {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    List<String> command = new ArrayList<>(List.of("bash", "-c", script, "bash", java));
    command.addAll(FLAGS);
    command.addAll(List.of(arguments));
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().keySet().removeIf(name -> name.startsWith("LAB_"));
    builder.environment().putAll(environment);
    Process process = builder.start();
    BufferedReader log = new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8));
    List<String> lines = new ArrayList<>();
    for (String line = log.readLine(); line != null; line = log.readLine()) {
      lines.add(line);
      Matcher ports = PORTS.matcher(line);
      if (ports.matches()) {
        // Read to its end, or the process would wait for its reader.
        var _ = Thread.ofVirtual().name("child-log").start(() -> log.lines().forEach(each -> {}));
        return new ChildServer(
            process,
            Integer.parseInt(ports.group(1)),
            Integer.parseInt(ports.group(2)),
            new AtomicReference<>());
      }
    }
    throw new IOException("the server did not start: " + String.join("\n", lines));
  }

  @Override
  public MBeanServerConnection mbeans() throws IOException {
    JMXConnector connector = jmx.get();
    if (connector == null) {
      connector = connect();
      jmx.set(connector);
    }
    return connector.getMBeanServerConnection();
  }

  @Override
  public boolean awaitRestart(Duration atMost) throws InterruptedException {
    return process.waitFor(atMost);
  }

  @Override
  public void close() throws IOException {
    JMXConnector connector = jmx.get();
    if (connector != null) {
      connector.close();
    }
    // Not Process.destroy, which also closes the log that it is still to write.
    var _ = process.toHandle().destroy();
    try {
      if (!process.waitFor(Fixture.PATIENCE)) {
        process.destroyForcibly().waitFor();
        throw new IOException("killed, as it did not stop");
      }
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
}
