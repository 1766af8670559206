package lab.fixedpool;

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

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }

  /** As {@code Executors.newFixedThreadPool}, but for the order in which threads get requests. */
  private static ExecutorService pool(Settings settings) {
    int size = settings.poolSize();
    LinkedBlockingQueue<Runnable> queue =
        settings.lifo() ? new LifoHandOver() : new LinkedBlockingQueue<>();
    return new ThreadPoolExecutor(
        size, size, 0, TimeUnit.SECONDS, queue, Thread.ofPlatform().name("pool-", 1).factory());
  }
}
