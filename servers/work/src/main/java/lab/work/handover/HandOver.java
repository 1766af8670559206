package lab.work.handover;

import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntSupplier;
import lab.work.Admission;
import org.jspecify.annotations.Nullable;

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
  /** When a request was handed over and begun, and its place. The thread only that works on it. */
  public static final class Ticket {
    private final long handedOverNanos;
    private final long begunNanos = System.nanoTime();
    private final boolean rejected;
    private @Nullable Admission places;
    private boolean used;

    private Ticket(long handedOverNanos, boolean rejected, @Nullable Admission places) {
      this.handedOverNanos = handedOverNanos;
      this.rejected = rejected;
      this.places = places;
    }

    public long handedOverNanos() {
      return handedOverNanos;
    }

    public long begunNanos() {
      return begunNanos;
    }

    /** True if the queue was full, so that the work must not be done. */
    public boolean rejected() {
      return rejected;
    }

    /** Frees its place, before the client has its answer: its next request finds it free. */
    public void leave() {
      if (places != null) {
        places.leave();
        places = null;
      }
    }
  }

  private static final ThreadLocal<Ticket> TICKET = new ThreadLocal<>();

  private final Executor executor;
  private final IntSupplier limit;
  private final Admission places = new Admission(0);
  private final AtomicInteger running = new AtomicInteger();

  /** Saying no must not need the threads that have run out, nor the dispatcher. */
  private final ExecutorService refusals =
      Executors.newThreadPerTaskExecutor(Thread.ofVirtual().name("refusal-", 1).factory());

  /** At most so many may be queued or running; 0 = any number. Asked at every hand-over. */
  public HandOver(Executor executor, IntSupplier limit) {
    this.executor = executor;
    this.limit = limit;
  }

  public static Ticket ticket() {
    return TICKET.get();
  }

  /** The ticket of a request that begins on this thread; one read with another did not wait. */
  public static Ticket begin() {
    Ticket ticket = TICKET.get();
    if (ticket.used) {
      ticket = new Ticket(System.nanoTime(), ticket.rejected, null);
      TICKET.set(ticket);
    }
    ticket.used = true;
    return ticket;
  }

  public int accepted() {
    return running.get();
  }

  @Override
  public void execute(Runnable request) {
    execute(request, System.nanoTime());
  }

  /** As the other one, of a request that has waited since that time. */
  public void execute(Runnable request, long handedOverNanos) {
    if (!places.tryEnter(limit.getAsInt())) {
      refusals.execute(() -> run(request, new Ticket(handedOverNanos, true, null)));
      return;
    }
    running.incrementAndGet();
    try {
      executor.execute(
          () -> {
            Ticket ticket = new Ticket(handedOverNanos, false, places);
            try {
              run(request, ticket);
            } finally {
              ticket.leave();
              running.decrementAndGet();
            }
          });
    } catch (Throwable e) {
      places.leave();
      running.decrementAndGet();
      throw e;
    }
  }

  private static void run(Runnable request, Ticket ticket) {
    TICKET.set(ticket);
    try {
      request.run();
    } finally {
      TICKET.remove();
    }
  }
}
