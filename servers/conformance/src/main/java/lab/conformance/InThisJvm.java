package lab.conformance;

import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.management.MBeanServerConnection;
import lab.shell.LabServer;
import lab.shell.ServerModel;
import lab.spec.Settings;

/** A server beside the tests: the fast way, for models that a JVM can have several of. */
record InThisJvm(int httpPort, int managementPort, LabServer server, CountDownLatch restarted)
    implements RunningServer {
  static Launcher of(ServerModel model) {
    return environment -> {
      CountDownLatch restarted = new CountDownLatch(1);
      Settings settings = Settings.fromEnvironment(environment);
      LabServer server = LabServer.start(model, settings, restarted::countDown);
      return new InThisJvm(server.httpPort(), server.managementPort(), server, restarted);
    };
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
