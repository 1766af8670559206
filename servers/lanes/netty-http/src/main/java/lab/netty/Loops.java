package lab.netty;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** The server's event loops, one thread each, called {@code netty-loop-<n>}. Any thread. */
final class Loops extends MultiThreadIoEventLoopGroup {
  /** How long a loop may take to close what is left when it is told to end. */
  private static final Duration END = Duration.ofSeconds(2);

  private final List<Loop> all = new ArrayList<>();

  Loops(int count, IoHandlerFactory io) {
    super(count, (Executor) null, io, new AtomicInteger());
    forEach(each -> all.add((Loop) each));
  }

  @Override
  protected IoEventLoop newChild(Executor executor, IoHandlerFactory io, Object... made) {
    int number = ((AtomicInteger) made[0]).incrementAndGet();
    return new Loop(this, "netty-loop-" + number, io);
  }

  List<Loop> all() {
    return all;
  }

  void end() throws InterruptedException {
    var _ =
        shutdownGracefully(0, END.toNanos(), TimeUnit.NANOSECONDS)
            .await(END.toNanos(), TimeUnit.NANOSECONDS);
  }
}
