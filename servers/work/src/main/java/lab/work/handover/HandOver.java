package lab.work.handover;

import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.IntSupplier;
import lab.work.Admission;

/**
 * For frameworks' servers, which dispatch to an executor themselves: stands between the dispatcher
 * and the model's executor and takes the time of each hand-over, so that waiting for a thread is
 * measured: without it a saturated pool looks healthy from inside. It also keeps the bound of the
 * queue.
 *
 * <pre>
 *   dispatcher --execute--> [ bound reached? ] --no--> model's executor --> handler, ticket in scope
 *                                   |
 *                                  yes --> a virtual thread --> handler, ticket says rejected
 * </pre>
 */
public final class HandOver implements Executor {
  /**
   * When a request was handed over and when its thread began with it, by {@link System#nanoTime}.
   *
   * @param rejected whether the queue was full, so that the work must not be done
   */
  public record Ticket(long handedOverNanos, long begunNanos, boolean rejected) {}

  private static final ThreadLocal<Ticket> TICKET = new ThreadLocal<>();

  private final Executor executor;
  private final IntSupplier limit;
  private final Admission accepted = new Admission(0);

  /** Saying no must not need the threads that have run out, nor the dispatcher. */
  private final ExecutorService refusals =
      Executors.newThreadPerTaskExecutor(Thread.ofVirtual().name("refusal-", 1).factory());

  /**
   * @param limit most requests that may be queued or running; 0 = any number; asked at every
   *     hand-over
   */
  public HandOver(Executor executor, IntSupplier limit) {
    this.executor = executor;
    this.limit = limit;
  }

  /** The ticket of the request that the calling thread works on. */
  public static Ticket ticket() {
    return TICKET.get();
  }

  /** Requests handed over and not yet ended. */
  public int accepted() {
    return accepted.admitted();
  }

  @Override
  public void execute(Runnable request) {
    execute(request, System.nanoTime());
  }

  /** As the other one, of a request that has waited since that time. */
  public void execute(Runnable request, long handedOverNanos) {
    if (!accepted.tryEnter(limit.getAsInt())) {
      refusals.execute(() -> run(request, handedOverNanos, true));
      return;
    }
    boolean handed = false;
    try {
      executor.execute(
          () -> {
            try {
              run(request, handedOverNanos, false);
            } finally {
              accepted.leave();
            }
          });
      handed = true;
    } finally {
      if (!handed) {
        accepted.leave();
      }
    }
  }

  private static void run(Runnable request, long handedOver, boolean rejected) {
    TICKET.set(new Ticket(handedOver, System.nanoTime(), rejected));
    try {
      request.run();
    } finally {
      TICKET.remove();
    }
  }
}
