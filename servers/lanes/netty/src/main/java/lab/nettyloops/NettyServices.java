package lab.nettyloops;

import io.netty.channel.EventLoop;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import lab.spec.BlockTheLoop;
import lab.work.nonblocking.LoopServices;
import org.jspecify.annotations.Nullable;

/** What one of Netty's event loops offers to the routes. */
final class NettyServices implements LoopServices {
  private static final Pending ENDED = () -> {};

  private final EventLoop loop;
  private final DownstreamClient downstream;
  private final ExecutorService helpers;
  private final BlockTheLoop blockTheLoop;

  /**
   * @param helpers threads that may block
   * @param blockTheLoop whether waits block the loop's thread, and how
   */
  NettyServices(
      EventLoop loop,
      DownstreamClient downstream,
      ExecutorService helpers,
      BlockTheLoop blockTheLoop) {
    this.loop = loop;
    this.downstream = downstream;
    this.helpers = helpers;
    this.blockTheLoop = blockTheLoop;
  }

  @Override
  public Pending after(long millis, Runnable then) {
    if (blockTheLoop.blocks()) {
      blockTheLoop.hold(millis);
      then.run();
      return ENDED;
    }
    var timer = loop.schedule(then, millis, TimeUnit.MILLISECONDS);
    return () -> timer.cancel(false);
  }

  @Override
  public <T> void handOver(Callable<T> work, BiConsumer<@Nullable T, @Nullable Throwable> then) {
    helpers.execute(
        () -> {
          T result = null;
          Throwable failure = null;
          try {
            result = work.call();
          } catch (Throwable e) {
            failure = e;
          }
          T value = result;
          Throwable reason = failure;
          loop.execute(() -> then.accept(value, reason));
        });
  }

  @Override
  public void callDownstream(DownstreamCallback callback) {
    downstream.call(callback);
  }
}
