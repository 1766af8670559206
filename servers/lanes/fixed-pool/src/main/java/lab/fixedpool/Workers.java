package lab.fixedpool;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import lab.spec.Settings;

/** The pool of platform threads that works on requests. */
final class Workers {
  private Workers() {}

  /** A fixed number of threads, whose queue hands over in the order of the settings. */
  static ExecutorService pool(Settings settings) {
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
