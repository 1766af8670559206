package lab.contract.blocking;

import io.prometheus.metrics.core.metrics.Summary;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * How late a virtual thread goes on that could: what it waits for a carrier, and until the JDK
 * noticed. One thread sleeps for a while, again and again, and tells by how much it woke too late.
 * So this samples the wait at times that have nothing to do with the requests.
 */
final class VirtualThreadLag implements AutoCloseable {
  /** Twenty a second: a thousand in a minute, and no cost that can be seen. */
  private static final long BETWEEN_MS = 50;

  private final PrometheusRegistry registry;
  private final AtomicBoolean begun = new AtomicBoolean();
  private volatile boolean closed;

  /** Tells nothing before the first {@link #of} a virtual thread. */
  VirtualThreadLag(PrometheusRegistry registry) {
    this.registry = registry;
  }

  /** A thread works on a request. The first virtual one begins it. Any thread; does not block. */
  void of(Thread thread) {
    if (thread.isVirtual() && !begun.getPlain() && begun.compareAndSet(false, true)) {
      Summary lag =
          Summary.builder()
              .name("lab_virtual_thread_lag_seconds")
              .help("By how much later than it could a virtual thread went on that slept.")
              .register(registry);
      Thread unused = Thread.ofVirtual().name("lag").start(() -> sample(lag));
    }
  }

  /** Ends within {@link #BETWEEN_MS}. */
  @Override
  public void close() {
    closed = true;
  }

  private void sample(Summary lag) {
    while (!closed) {
      long due = System.nanoTime() + BETWEEN_MS * 1_000_000;
      try {
        Thread.sleep(BETWEEN_MS);
      } catch (InterruptedException e) {
        return;
      }
      lag.observe(Math.max(0, System.nanoTime() - due) / 1e9);
    }
  }
}
