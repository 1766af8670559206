package lab.contract.blocking;

import io.prometheus.metrics.core.metrics.Summary;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * How late a virtual thread goes on that could: what it waits for a carrier, and until the JDK
 * noticed. One thread is due to wake at even times, and tells by how much it is late for each, also
 * for those that pass while it waits: else bad moments would count less often than good ones. So
 * this is what a request meets that comes at any time.
 */
final class VirtualThreadLag implements AutoCloseable {
  /** Twenty a second: a thousand in a minute, and no cost that can be seen. */
  private static final long BETWEEN_NANOS = 50_000_000;

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

  /** Ends within {@link #BETWEEN_NANOS}. */
  @Override
  public void close() {
    closed = true;
  }

  private void sample(Summary lag) {
    long due = System.nanoTime();
    while (!closed) {
      due += BETWEEN_NANOS;
      try {
        Thread.sleep(Duration.ofNanos(Math.max(0, due - System.nanoTime())));
      } catch (InterruptedException e) {
        return;
      }
      long now = System.nanoTime();
      observe(lag, now - due);
      while (now - due >= BETWEEN_NANOS) {
        due += BETWEEN_NANOS;
        observe(lag, now - due);
      }
    }
  }

  private static void observe(Summary lag, long nanos) {
    lag.observe(Math.max(0, nanos) / 1e9);
  }
}
