package lab.virtualthreads;

import java.util.concurrent.Executors;
import lab.contract.LabServer;
import lab.contract.ServerModel;
import lab.front.FrontServer;

/** Model {@code virtual-threads}: a new virtual thread for every request. */
public final class VirtualThreads {
  public static final ServerModel MODEL =
      FrontServer.model(
          "virtual-threads",
          settings ->
              Executors.newThreadPerTaskExecutor(
                  Thread.ofVirtual().name("vt-request-", 1).factory()));

  private VirtualThreads() {}

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
