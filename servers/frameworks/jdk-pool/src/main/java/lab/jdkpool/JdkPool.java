package lab.jdkpool;

import java.util.concurrent.Executors;
import lab.jdkhttp.JdkHttp;
import lab.shell.LabServer;
import lab.shell.ServerModel;

/** Model {@code jdk-pool}: a fixed number of platform threads, each with one request at a time. */
public final class JdkPool {
  public static final ServerModel MODEL =
      JdkHttp.model(
          "jdk-pool",
          settings ->
              Executors.newFixedThreadPool(
                  settings.poolSize(), Thread.ofPlatform().name("pool-", 1).factory()));

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
