package lab.nettyloops;

import io.netty.util.concurrent.Promise;
import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import lab.netty.Loop;
import lab.spec.BlockTheLoop;
import lab.work.nonblocking.LoopServices;
import org.jspecify.annotations.Nullable;

/** What one of Netty's event loops offers to the routes; helpers run what may block. */
record NettyServices(
    Loop loop, DownstreamPool downstream, Executor helpers, BlockTheLoop blockTheLoop)
    implements LoopServices {
  @Override
  public Pending after(long millis, Runnable then) {
    if (blockTheLoop.blocks()) {
      blockTheLoop.hold(millis);
      then.run();
      return () -> {};
    }
    var timer = loop.schedule(then, millis, TimeUnit.MILLISECONDS);
    return () -> timer.cancel(false);
  }

  @Override
  public <T> void handOver(Callable<T> work, BiConsumer<@Nullable T, @Nullable Throwable> then) {
    Promise<T> done = loop.newPromise();
    var _ = done.addListener(_ -> then.accept(done.getNow(), done.cause()));
    helpers.execute(
        () -> {
          try {
            var _ = done.trySuccess(work.call());
          } catch (Throwable e) {
            var _ = done.tryFailure(e);
          }
        });
  }

  @Override
  public void callDownstream(DownstreamCallback callback) {
    downstream.call(callback);
  }
}
