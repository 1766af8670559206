package lab.netty;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class LoopTest {
  private static final long WORK_NANOS = 5_000_000;

  private final List<Loops> started = new ArrayList<>();

  private Loop start(boolean epoll) throws Exception {
    started.add(new Loops(1, NettyHttp.io(epoll)));
    return started.getLast().all().getFirst();
  }

  @AfterEach
  void end() throws Exception {
    for (Loops each : started) {
      each.end();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void waitingIsNotWork(boolean epoll) throws Exception {
    Loop loop = start(epoll);
    long waited;
    long busy;
    do {
      // A machine that leaves the loop no CPU makes it look busy: then it is tried again.
      waited = -System.nanoTime();
      busy = -loop.busyNanos();
      var _ = loop.schedule(() -> {}, 20, TimeUnit.MILLISECONDS).sync();
      waited += System.nanoTime();
      busy += loop.busyNanos();
    } while (busy > waited / 2);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void workUnderWayIsCounted(boolean epoll) throws Exception {
    Loop loop = start(epoll);
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch enough = new CountDownLatch(1);
    loop.execute(
        () -> {
          begun.countDown();
          try {
            enough.await();
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
          }
        });
    begun.await();
    long before = loop.busyNanos();
    awaitBusy(loop, before + WORK_NANOS);
    enough.countDown();
    assertThat(loop.busyNanos()).isGreaterThanOrEqualTo(before + WORK_NANOS);
  }

  /** Netty reports it; no handler has to. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void readingIsWork(boolean epoll) throws Exception {
    Loop loop = start(epoll);
    Channel listener =
        new ServerBootstrap()
            .group(loop)
            .channel(loop.listenerType())
            .childHandler(
                new ChannelInitializer<Channel>() {
                  @Override
                  protected void initChannel(Channel accepted) {
                    long end = System.nanoTime() + WORK_NANOS;
                    while (System.nanoTime() < end) {
                      Thread.onSpinWait();
                    }
                  }
                })
            .bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
            .sync()
            .channel();
    long before = loop.busyNanos();
    int port = ((InetSocketAddress) listener.localAddress()).getPort();
    try (Socket _ = new Socket(InetAddress.getLoopbackAddress(), port)) {
      awaitBusy(loop, before + WORK_NANOS);
    }
  }

  private static void awaitBusy(Loop loop, long nanos) {
    while (loop.busyNanos() < nanos) {
      Thread.onSpinWait();
    }
  }
}
