package lab.fixedpool;

import java.util.concurrent.Executors;
import lab.contract.LabServer;
import lab.contract.ServerModel;
import lab.jdkhttp.JdkHttp;

/**
 * Model {@code fixed-pool}: a fixed number of platform threads, each with one request at a time.
 */
public final class FixedPool {
  public static final ServerModel MODEL =
      JdkHttp.model(
          "fixed-pool",
          settings ->
              Executors.newFixedThreadPool(
                  settings.poolSize(), Thread.ofPlatform().name("pool-", 1).factory()));

  private FixedPool() {}

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
