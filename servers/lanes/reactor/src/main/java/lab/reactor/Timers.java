package lab.reactor;

import java.util.Arrays;
import lab.work.nonblocking.LoopServices.Pending;
import org.jspecify.annotations.Nullable;

/**
 * What is to happen at a time: a binary heap whose entries know their place, so that cancelling
 * leaves nothing behind. Most timers are timeouts: set at the far end, where adding takes one
 * comparison, and cancelled long before they are due. One thread only.
 */
public final class Timers {
  /** One thing to happen; set again as often as wanted, at one time at a time. */
  public final class Timer implements Pending {
    private final Runnable then;
    private long dueNanos;
    private int place = -1;

    private Timer(Runnable then) {
      this.then = then;
    }

    @Override
    public void cancel() {
      Timers.this.cancel(this);
    }
  }

  private Timer[] heap = new Timer[64];
  private int size;

  /** Makes a timer that is not set yet. */
  public Timer timer(Runnable then) {
    return new Timer(then);
  }

  /** Sets a timer, or sets it anew. Times are of {@link System#nanoTime}'s kind. */
  public void set(Timer timer, long dueNanos) {
    cancel(timer);
    timer.dueNanos = dueNanos;
    if (size == heap.length) {
      heap = Arrays.copyOf(heap, 2 * size);
    }
    rise(timer, size++);
  }

  /** Takes a timer back; one that is not set stays so. */
  void cancel(Timer timer) {
    int place = timer.place;
    if (place < 0) {
      return;
    }
    timer.place = -1;
    Timer last = heap[--size];
    clear(size);
    if (place < size) {
      sink(last, place);
      if (last.place == place) {
        rise(last, place);
      }
    }
  }

  /** Calls every timer due by now, earliest first; those set meanwhile for later stay. */
  void callDue(long nowNanos) {
    while (size > 0 && heap[0].dueNanos - nowNanos <= 0) {
      Timer first = heap[0];
      cancel(first);
      first.then.run();
    }
  }

  /** Returns the milliseconds until the next one is due, rounded up; -1 when none is set. */
  long millisToNext(long nowNanos) {
    if (size == 0) {
      return -1;
    }
    long nanos = heap[0].dueNanos - nowNanos;
    return nanos <= 0 ? 0 : (nanos + 999_999) / 1_000_000;
  }

  int size() {
    return size;
  }

  private void rise(Timer timer, int from) {
    int place = from;
    while (place > 0) {
      int parent = (place - 1) >>> 1;
      if (timer.dueNanos - heap[parent].dueNanos >= 0) {
        break;
      }
      put(heap[parent], place);
      place = parent;
    }
    put(timer, place);
  }

  private void sink(Timer timer, int from) {
    int place = from;
    for (int child = 2 * place + 1; child < size; child = 2 * place + 1) {
      if (child + 1 < size && heap[child + 1].dueNanos - heap[child].dueNanos < 0) {
        child++;
      }
      if (heap[child].dueNanos - timer.dueNanos >= 0) {
        break;
      }
      put(heap[child], place);
      place = child;
    }
    put(timer, place);
  }

  private void put(Timer timer, int place) {
    heap[place] = timer;
    timer.place = place;
  }

  @SuppressWarnings("NullAway") // Beyond size there is nothing, and nobody looks.
  private void clear(int place) {
    @Nullable Timer[] slots = heap;
    slots[place] = null;
  }
}
