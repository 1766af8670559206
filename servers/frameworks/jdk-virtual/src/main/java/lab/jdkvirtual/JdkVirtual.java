package lab.jdkvirtual;

import java.util.concurrent.Executors;
import lab.jdkhttp.JdkHttp;
import lab.shell.LabServer;
import lab.shell.ServerModel;

/** Model {@code jdk-virtual}: a new virtual thread for every request. */
public final class JdkVirtual {
  public static final ServerModel MODEL =
      JdkHttp.model(
          "jdk-virtual",
          settings ->
              Executors.newThreadPerTaskExecutor(
                  Thread.ofVirtual().name("vt-request-", 1).factory()));

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
