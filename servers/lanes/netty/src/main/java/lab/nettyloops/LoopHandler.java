package lab.nettyloops;

import static java.util.Objects.requireNonNull;

import io.netty.channel.EventLoop;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import lab.netty.Exchange;
import lab.netty.Loop;
import lab.netty.RequestHandler;
import lab.observe.BranchMetrics;
import lab.shell.ModelContext;
import lab.work.nonblocking.NonBlockingRoutes;

/** Works on every request on the event loop of its connection. */
final class LoopHandler implements RequestHandler {
  private final Map<EventLoop, NonBlockingRoutes> routes = new HashMap<>();

  /** For what may block, which is reading files: from the page cache, so CPUs are what it takes. */
  private final ExecutorService helpers =
      Executors.newFixedThreadPool(
          Runtime.getRuntime().availableProcessors(),
          Thread.ofPlatform().daemon().name("netty-helper-", 1).factory());

  LoopHandler(ModelContext context, List<Loop> loops) {
    Aggregates aggregates = new Aggregates(context.file(), new BranchMetrics(context.registry()));
    Downstream downstream = new Downstream(context, helpers);
    for (Loop loop : loops) {
      NettyServices services =
          new NettyServices(
              loop.executor(),
              new DownstreamClient(loop, downstream),
              helpers,
              context.settings().blockTheLoop());
      routes.put(loop.executor(), new NonBlockingRoutes(context, services, aggregates));
    }
  }

  @Override
  public void handle(Exchange exchange) {
    exchange.begin();
    requireNonNull(routes.get(exchange.loop())).begin(exchange.call(), exchange::answer);
  }

  @Override
  public void close() {
    var _ = helpers.shutdownNow();
  }
}
