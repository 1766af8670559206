package lab.observe;

import io.prometheus.metrics.core.metrics.Summary;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * How late a virtual thread goes on that waited for input: until the JDK noticed the input, and
 * then for a carrier. At even times a platform thread writes to one of some pipes, each of which
 * has a virtual thread that waits for it, as requests wait for the downstream. One thread for all
 * times would wait once and find the rest at once; one that sleeps comes back another way.
 */
public final class VirtualThreadLag implements AutoCloseable {
  private static final Logger LOG = System.getLogger(VirtualThreadLag.class.getName());

  /** Twenty a second: a thousand in a minute, and no cost that can be seen. */
  private static final long BETWEEN_NANOS = 50_000_000;

  /** They tell a lag of 0.8 s as often as any other. A longer one is told less often. */
  private static final int PIPES = 16;

  private final PrometheusRegistry registry;
  private final AtomicBoolean begun = new AtomicBoolean();
  private volatile boolean closed;

  /** Tells nothing before the first {@link #of} a virtual thread. */
  public VirtualThreadLag(PrometheusRegistry registry) {
    this.registry = registry;
  }

  /** A thread works on a request. The first virtual one begins it. Any thread; does not block. */
  public void of(Thread thread) {
    if (thread.isVirtual() && !begun.getPlain() && begun.compareAndSet(false, true)) {
      Summary lag =
          Summary.builder()
              .name("lab_virtual_thread_lag_seconds")
              .help(
                  "By how much later than it could a virtual thread went on that waited for input.")
              .register(registry);
      Thread unused = Thread.ofPlatform().daemon().name("lag").start(() -> sample(lag));
    }
  }

  /** Ends within {@link #BETWEEN_NANOS}. */
  @Override
  public void close() {
    closed = true;
  }

  private void sample(Summary lag) {
    List<Waiter> waiters = new ArrayList<>();
    try {
      for (int i = 0; i < PIPES; i++) {
        waiters.add(new Waiter(lag));
      }
      long due = System.nanoTime();
      for (int next = 0; !closed; next = (next + 1) % PIPES) {
        due += BETWEEN_NANOS;
        TimeUnit.NANOSECONDS.sleep(due - System.nanoTime());
        waiters.get(next).wake();
      }
    } catch (IOException e) {
      // As where no descriptor is left.
      LOG.log(Level.WARNING, "nobody tells how late virtual threads are", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      waiters.forEach(Waiter::end);
    }
  }

  /** A pipe, and the virtual thread that waits for its input. */
  private static final class Waiter {
    private static final byte[] SOMETHING = {1};

    private final Pipe pipe = Pipe.open();

    /** When something was written that is not read yet; 0 where there is nothing. */
    private volatile long writtenNanos;

    Waiter(Summary lag) throws IOException {
      Thread unused = Thread.ofVirtual().name("lag").start(() -> read(lag));
    }

    /** Gives it input, unless it has not come to the last one yet. */
    void wake() throws IOException {
      if (writtenNanos == 0) {
        writtenNanos = System.nanoTime();
        pipe.sink().write(ByteBuffer.wrap(SOMETHING));
      }
    }

    void end() {
      try {
        pipe.sink().close();
      } catch (IOException e) {
        LOG.log(Level.DEBUG, "a pipe is not closed", e);
      }
    }

    private void read(Summary lag) {
      ByteBuffer input = ByteBuffer.allocate(1);
      try (Pipe.SourceChannel source = pipe.source()) {
        while (source.read(input.clear()) > 0) {
          lag.observe((System.nanoTime() - writtenNanos) / 1e9);
          writtenNanos = 0;
        }
      } catch (IOException e) {
        LOG.log(Level.DEBUG, "a pipe is closed", e);
      }
    }
  }
}
