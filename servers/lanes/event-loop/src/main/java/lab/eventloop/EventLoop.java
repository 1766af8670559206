package lab.eventloop;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import lab.observe.LoopMetrics;
import lab.reactor.ReactorGroup;
import lab.shell.LabServer;
import lab.shell.ModelContext;
import lab.shell.ServerModel;
import lab.shell.TrafficServer;
import lab.work.DownstreamAddress;
import lab.work.DownstreamLimits;

/** Model {@code event-loop}: one thread, a selector, and a state machine per connection. */
public final class EventLoop implements TrafficServer {
  public static final ServerModel MODEL = new ServerModel("event-loop", EventLoop::new);

  private final ReactorGroup group;

  /** They do what may block. Files are in the page cache, so reading them takes only CPU. */
  private final ExecutorService helpers =
      Executors.newFixedThreadPool(
          Runtime.getRuntime().availableProcessors(),
          Thread.ofPlatform().daemon().name("helper-", 1).factory());

  private EventLoop(ModelContext context) throws IOException {
    int count = context.settings().loops(1);
    DownstreamLimits limits = DownstreamLimits.publish(context);
    group = new ReactorGroup(context);
    DownstreamAddress address = new DownstreamAddress(context.settings().downstreamUrl(), helpers);
    List<Loop> loops =
        group.open(
            "loop-", count, name -> new Loop(name, group, context, limits, address, helpers));
    context.knobs().hasLoops(count);
    LoopMetrics.register(context.registry(), () -> loops);
    group.start();
  }

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }

  @Override
  public int port() {
    return group.port();
  }

  @Override
  public void stop(Duration grace) {
    group.stop(grace);
    var unused = helpers.shutdownNow();
  }
}
