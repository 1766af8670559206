package lab.fixedpool;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import lab.front.FrontServer;
import lab.shell.LabServer;
import lab.shell.ServerModel;
import lab.spec.Settings;

/** Model {@code fixed-pool}: a fixed number of platform threads, each with a request at a time. */
public final class FixedPool {
  public static final ServerModel MODEL = FrontServer.model("fixed-pool", FixedPool::pool);

  private FixedPool() {}

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }

  /** A fixed number of threads, whose queue hands over in the order of the settings. */
  private static ExecutorService pool(Settings settings) {
    BlockingQueue<Runnable> queue =
        switch (settings.poolOrder()) {
          case FIFO -> new LinkedBlockingQueue<>();
          case LIFO -> new LifoHandOver();
        };
    return new ThreadPoolExecutor(
        settings.poolSize(),
        settings.poolSize(),
        0,
        TimeUnit.SECONDS,
        queue,
        Thread.ofPlatform().name("pool-", 1).factory());
  }
}
