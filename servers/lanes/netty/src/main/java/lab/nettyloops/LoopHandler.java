package lab.nettyloops;

import static java.util.Objects.requireNonNull;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import lab.netty.Exchange;
import lab.netty.Loop;
import lab.netty.RequestHandler;
import lab.shell.ModelContext;
import lab.work.DownstreamAddress;
import lab.work.DownstreamLimits;
import lab.work.nonblocking.NonBlockingRoutes;

/** Works on every request on the event loop of its connection. */
final class LoopHandler implements RequestHandler {
  private final Map<Loop, NonBlockingRoutes> routes = new HashMap<>();

  /** They do what may block. Files are in the page cache, so reading them takes only CPU. */
  private final ExecutorService helpers =
      Executors.newFixedThreadPool(
          Runtime.getRuntime().availableProcessors(),
          Thread.ofPlatform().daemon().name("netty-helper-", 1).factory());

  LoopHandler(ModelContext context, List<Loop> loops) {
    DownstreamLimits limits = DownstreamLimits.publish(context);
    DownstreamAddress address = new DownstreamAddress(context.settings().downstreamUrl(), helpers);
    Aggregates aggregates = new Aggregates(context.file());
    for (Loop loop : loops) {
      ChannelPool downstream = new ChannelPool(loop, context, limits, address);
      routes.put(loop, new NonBlockingRoutes(context, loop, helpers, downstream::call, aggregates));
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
