package lab.nettyvirtual;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import lab.netty.Exchange;
import lab.netty.RequestHandler;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.Settings;
import lab.work.blocking.BlockingRoutes;

/** Works on every request on a new virtual thread, with the routes of the blocking models. */
final class VirtualThreadHandler implements RequestHandler {
  private final BlockingRoutes routes;
  private final ExecutorService executor =
      Executors.newThreadPerTaskExecutor(Thread.ofVirtual().name("vt-request-", 1).factory());

  VirtualThreadHandler(ModelContext context) {
    context.knobs().hasNo(Settings.BLOCK_THE_LOOP);
    routes = new BlockingRoutes(context);
  }

  @Override
  public void handle(Exchange exchange) {
    try {
      executor.execute(() -> work(exchange));
    } catch (RejectedExecutionException e) {
      // Stopping: the grace is over.
      exchange.begin();
      exchange.abort();
    }
  }

  @Override
  public void close() {
    var _ = executor.shutdownNow();
    routes.close();
  }

  private void work(Exchange exchange) {
    exchange.begin();
    Answer answer;
    try {
      answer = routes.answer(exchange.call());
    } catch (InterruptedException e) {
      // Stopping: the grace is over.
      Thread.currentThread().interrupt();
      exchange.abort();
      return;
    }
    if (executor.isShutdown()) {
      // What it waited for was broken off: it is no answer.
      exchange.abort();
    } else {
      exchange.answer(answer);
    }
  }
}
