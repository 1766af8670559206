package lab.virtualthreads;

import java.util.concurrent.Executors;
import lab.front.FrontServer;
import lab.shell.LabServer;
import lab.shell.ServerModel;

/** Model {@code virtual-threads}: a new virtual thread for every request. */
public final class VirtualThreads {
  public static final ServerModel MODEL =
      FrontServer.model(
          "virtual-threads",
          settings ->
              Executors.newThreadPerTaskExecutor(
                  Thread.ofVirtual().name("vt-request-", 1).factory()));

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
