package lab.fixedpool;

import java.util.concurrent.Executors;
import lab.front.FrontServer;
import lab.shell.LabServer;
import lab.shell.ServerModel;

/** Model {@code fixed-pool}: a fixed number of platform threads, each with a request at a time. */
public final class FixedPool {
  public static final ServerModel MODEL =
      FrontServer.model(
          "fixed-pool",
          settings ->
              Executors.newFixedThreadPool(
                  settings.poolSize(), Thread.ofPlatform().name("pool-", 1).factory()));

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
