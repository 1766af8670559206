package lab.fixedpool;

import lab.front.FrontServer;
import lab.shell.LabServer;
import lab.shell.ServerModel;

/**
 * Model {@code fixed-pool}: a fixed number of platform threads, each with one request at a time.
 */
public final class FixedPool {
  public static final ServerModel MODEL = FrontServer.model("fixed-pool", Workers::pool);

  private FixedPool() {}

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
