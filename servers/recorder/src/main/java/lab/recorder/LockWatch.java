package lab.recorder;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import jdk.jfr.FlightRecorder;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedStackTrace;
import jdk.jfr.consumer.RecordedThread;
import jdk.jfr.consumer.RecordingStream;
import lab.spec.IntOption;
import org.jspecify.annotations.Nullable;

/**
 * Adds up how long threads waited for monitors and locks, and how long virtual threads kept their
 * carriers while they waited, by the line of code that waited. Off unless {@code lock_watch_ms}
 * says how long a wait must last to count: a recording costs.
 *
 * <p>Waits of platform threads, and carriers that are kept, are events of Flight Recorder, counted
 * as they end. For a virtual thread that waits for a lock JDK 25 has no event: {@link
 * ParkedThreads} looks for them. Where either ends without its owner, {@link #getThresholdMs()} is
 * 0. It needs nothing but the JDK, so that it watches any other JVM, too ({@link RecorderAgent}).
 */
public final class LockWatch implements LockWatchMXBean, AutoCloseable {
  /** How long a wait must last to count. No variable sets it: watching costs. */
  public static final IntOption THRESHOLD_MS = new IntOption("lock_watch_ms", 0, 0, 60_000);

  public static final String BEAN = "LockWatch";

  /** Who waits for what. None of the three has a space. */
  record Wait(String kind, String threads, String site) {
    @Override
    public String toString() {
      return kind + " " + threads + " " + site;
    }
  }

  static final String MONITOR = "monitor";
  static final String LOCK = "lock";
  static final String OTHER_SITES = "other";

  /** Each is a series. Locks that matter are few. */
  private static final int MOST_SITES = 30;

  private static final String PINNED = "pinned";
  private static final String PLATFORM = "platform";
  private static final String VIRTUAL = "virtual";

  private static final Logger LOG = System.getLogger(LockWatch.class.getName());

  private final boolean seesVirtual = ParkedThreads.canBeSeen();
  private final LongAdder failedLooks = new LongAdder();
  private volatile int thresholdMs;
  private @Nullable RecordingStream stream;
  private @Nullable ParkedThreads parked;

  /** What was counted since watching began; another one from the next beginning on. */
  private volatile Map<Wait, LongAdder> nanos = Map.of();

  /** Whether this JVM can tell of waits: one without Flight Recorder cannot. */
  public static boolean isPossible() {
    return FlightRecorder.isAvailable();
  }

  @Override
  public int getThresholdMs() {
    return thresholdMs;
  }

  /** Begins anew where the value is another one; 0 ends it, and forgets what was counted. */
  public synchronized void watch(int ms) {
    if (ms == thresholdMs) {
      return;
    }
    close();
    if (ms > 0) {
      Map<Wait, LongAdder> counted = new ConcurrentHashMap<>();
      RecordingStream begun = stream(Duration.ofMillis(ms), counted);
      stream = begun;
      if (seesVirtual) {
        parked =
            new ParkedThreads(
                (kind, site, waited) -> add(counted, new Wait(kind, VIRTUAL, site), waited),
                failedLooks::increment,
                () -> ended(begun));
      }
      nanos = counted;
    }
    thresholdMs = ms;
  }

  @Override
  public synchronized void close() {
    if (parked != null) {
      parked.close();
      parked = null;
    }
    RecordingStream ended = stream;
    stream = null;
    if (ended != null) {
      ended.close();
    }
    thresholdMs = 0;
    nanos = Map.of();
  }

  /** Called when the stream ends, also by {@link #close()}, and when the thread that looks dies. */
  private synchronized void ended(RecordingStream closed) {
    if (stream == closed) {
      LOG.log(Level.WARNING, "waits for locks are no longer counted: what counted them ended");
      close();
    }
  }

  private RecordingStream stream(Duration threshold, Map<Wait, LongAdder> counted) {
    RecordingStream next = new RecordingStream();
    for (String name : Waits.EVENTS) {
      next.enable(name).withThreshold(threshold).withStackTrace();
      next.onEvent(name, event -> count(event, threshold, counted));
    }
    next.onClose(() -> ended(next));
    // What is seconds would be too little from then on.
    next.onError(
        failure -> {
          LOG.log(Level.WARNING, "an event of Flight Recorder was not counted", failure);
          ended(next);
        });
    // Nothing is kept of an event, and none has to come after another.
    next.setReuse(true);
    next.setOrdered(false);
    next.startAsync();
    return next;
  }

  private void count(RecordedEvent event, Duration threshold, Map<Wait, LongAdder> counted) {
    Duration waited = event.getDuration();
    Wait wait = waitOf(event);
    // A recording beside this one may ask for shorter waits, and this one gets them too.
    if (wait != null && waited.compareTo(threshold) >= 0) {
      add(counted, wait, waited.toNanos());
    }
  }

  /** Null for what is no wait for a lock, and for what ParkedThreads sees. */
  private @Nullable Wait waitOf(RecordedEvent event) {
    String name = event.getEventType().getName();
    if (name.equals(Waits.PINNED)) {
      return new Wait(PINNED, VIRTUAL, site(event));
    }
    boolean isMonitor = name.equals(Waits.MONITOR_ENTER);
    boolean isLock = name.equals(Waits.THREAD_PARK) && Waits.parkedOn(event, Waits.LOCKS);
    RecordedThread thread = event.getThread();
    boolean isVirtual = thread != null && thread.isVirtual();
    if (!(isMonitor || isLock) || (isVirtual && seesVirtual)) {
      return null;
    }
    return new Wait(isMonitor ? MONITOR : LOCK, isVirtual ? VIRTUAL : PLATFORM, site(event));
  }

  static void add(Map<Wait, LongAdder> counted, Wait wait, long waitedNanos) {
    boolean fits = counted.size() < MOST_SITES || counted.containsKey(wait);
    counted
        .computeIfAbsent(
            fits ? wait : new Wait(wait.kind(), wait.threads(), OTHER_SITES),
            first -> new LongAdder())
        .add(waitedNanos);
  }

  /** The innermost frame that is not the JDK's; where all are, the innermost. */
  private static String site(RecordedEvent event) {
    RecordedStackTrace trace = event.getStackTrace();
    if (trace == null || trace.getFrames().isEmpty()) {
      return OTHER_SITES;
    }
    return Waits.innermostOutsideTheJdk(event)
        .map(Waits::text)
        .orElseGet(() -> Waits.text(trace.getFrames().getFirst()));
  }

  @Override
  public long getFailedLooks() {
    return failedLooks.sum();
  }

  @Override
  public Map<String, Double> getWaitedSeconds() {
    Map<String, Double> seconds = new HashMap<>();
    nanos.forEach((wait, sum) -> seconds.put(wait.toString(), sum.sum() / 1e9));
    return seconds;
  }
}
