package lab.conformance;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.management.MBeanServerConnection;
import lab.shell.LabServer;
import lab.shell.ServerModel;
import lab.spec.BadValueException;
import lab.spec.Settings;

/** Starts a model beside the test: the fast way, for models that a JVM can have several of. */
public record InThisJvm(ServerModel model) implements Launcher {
  @Override
  public RunningServer start(Map<String, String> environment)
      throws IOException, BadValueException {
    CountDownLatch restarted = new CountDownLatch(1);
    LabServer server =
        LabServer.start(model, Settings.fromEnvironment(environment), restarted::countDown);
    return new Running(server, restarted);
  }

  private record Running(LabServer server, CountDownLatch restarted) implements RunningServer {
    @Override
    public int httpPort() {
      return server.httpPort();
    }

    @Override
    public int managementPort() {
      return server.managementPort();
    }

    @Override
    public long pid() {
      return ProcessHandle.current().pid();
    }

    @Override
    public MBeanServerConnection mbeans() {
      return ManagementFactory.getPlatformMBeanServer();
    }

    @Override
    public boolean awaitRestart(Duration atMost) throws InterruptedException {
      return restarted.await(atMost.toNanos(), TimeUnit.NANOSECONDS);
    }

    @Override
    public void close() {
      server.close();
    }
  }
}
