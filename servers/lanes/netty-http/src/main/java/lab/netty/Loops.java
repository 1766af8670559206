package lab.netty;

import static java.util.Objects.requireNonNull;

import io.netty.channel.EventLoop;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.FastThreadLocalThread;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** The server's event loops, one thread each, called {@code netty-loop-<n>}. Any thread. */
final class Loops {
  /** How long a loop may take to close what is left when it is told to end. */
  private static final Duration END = Duration.ofSeconds(2);

  private final EventLoopGroup group;
  private final Map<EventExecutor, Loop> byExecutor = new HashMap<>();
  private final List<Loop> all = new ArrayList<>();

  Loops(int count) {
    Map<Object, LoopIo> ios = new HashMap<>();
    IoHandlerFactory nio = NioIoHandler.newFactory();
    AtomicInteger started = new AtomicInteger();
    ThreadFactory threads =
        task -> new FastThreadLocalThread(task, "netty-loop-" + started.incrementAndGet());
    group =
        new MultiThreadIoEventLoopGroup(
            count,
            threads,
            executor -> {
              LoopIo io = new LoopIo(nio.newHandler(executor), System::nanoTime);
              ios.put(executor, io);
              return io;
            });
    for (EventExecutor each : group) {
      // A loop's thread starts with its first task. One after the other keeps names in order.
      String name =
          each.submit(() -> Thread.currentThread().getName()).syncUninterruptibly().getNow();
      Loop loop = new Loop(name, (EventLoop) each, requireNonNull(ios.get(each)));
      byExecutor.put(each, loop);
      all.add(loop);
    }
  }

  EventLoopGroup group() {
    return group;
  }

  List<Loop> all() {
    return all;
  }

  Loop of(EventLoop executor) {
    return requireNonNull(byExecutor.get(executor));
  }

  int openConnections() {
    int open = 0;
    for (Loop loop : all) {
      open += loop.openConnections();
    }
    return open;
  }

  int idleConnections() {
    int idle = 0;
    for (Loop loop : all) {
      idle += loop.idleConnections();
    }
    return idle;
  }

  /** Waits until no connection has a request in flight, for at most the grace. */
  void drain(Duration grace) throws InterruptedException {
    CountDownLatch empty = new CountDownLatch(all.size());
    all.forEach(loop -> loop.drain(empty));
    var _ = empty.await(grace.toNanos(), TimeUnit.NANOSECONDS);
  }

  /** Closes every connection and ends the threads. */
  void end() throws InterruptedException {
    var _ =
        group
            .shutdownGracefully(0, END.toNanos(), TimeUnit.NANOSECONDS)
            .await(END.toNanos(), TimeUnit.NANOSECONDS);
  }
}
