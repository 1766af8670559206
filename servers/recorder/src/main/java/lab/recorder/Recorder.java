package lab.recorder;

import com.sun.net.httpserver.HttpExchange;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.regex.Pattern;
import jdk.jfr.FlightRecorder;
import jdk.jfr.Recording;
import jdk.jfr.RecordingState;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedStackTrace;
import jdk.jfr.consumer.RecordingFile;
import lab.spec.Answer;
import lab.spec.BadValueException;
import lab.spec.IntOption;
import org.jspecify.annotations.Nullable;

/**
 * Records where this JVM spends its CPU time, allocates, or waits for locks, by JDK Flight
 * Recorder: one recording at a time, which ends by itself. It is read when it has ended, so nothing
 * is computed under the load. Any thread; a call waits for the one before it.
 */
public final class Recorder implements AutoCloseable {
  public static final String CALLS =
      "/recording/cpu /recording/alloc /recording/lock /recording/end";

  static final String CPU = "cpu";
  static final String ALLOC = "alloc";
  static final String LOCK = "lock";

  private static final IntOption SECONDS = new IntOption("seconds", 60, 1, 3600);

  /** A recording and a copy of it have room in the container's /tmp. */
  private static final long MOST_BYTES = 96L << 20;

  /** A recording that grew larger may have lost a chunk, of some 12 MB, at its beginning. */
  private static final long SURELY_WHOLE_BYTES = MOST_BYTES * 3 / 4;

  /** JEP 509, in JDK 25 on Linux. */
  private static final String CPU_TIME_SAMPLE = "jdk.CPUTimeSample";

  private static final String LOST_SAMPLES = "jdk.CPUTimeSamplesLost";
  private static final String EXECUTION_SAMPLE = "jdk.ExecutionSample";
  private static final String ALLOCATION_SAMPLE = "jdk.ObjectAllocationSample";

  /** What a thread parks on that waits for a lock or a permit, and not for work or an answer. */
  private static final Pattern LOCKS_AND_PERMITS =
      Pattern.compile(Waits.LOCKS.pattern() + "|java\\.util\\.concurrent\\.Semaphore\\$.*");

  /** What is between a wait and the code that waits. */
  private static final Pattern INSIDE_A_WAIT =
      Pattern.compile(
          "(java\\.util\\.concurrent\\.(locks\\.|Semaphore)|jdk\\.internal\\."
              + "|java\\.lang\\.(VirtualThread|System\\$)).*");

  private @Nullable Recording recording;
  private List<String> events = List.of();

  /** Does what a call asks for; null where it is none of {@link #CALLS}. */
  public @Nullable Answer answer(HttpExchange exchange) throws IOException {
    try {
      return switch (Exchanges.call(exchange)) {
        case "POST /recording/cpu" -> start(CPU, Exchanges.numbers(exchange));
        case "POST /recording/alloc" -> start(ALLOC, Exchanges.numbers(exchange));
        case "POST /recording/lock" -> start(LOCK, Exchanges.numbers(exchange));
        case "POST /recording/end" -> end(Exchanges.numbers(exchange));
        default -> null;
      };
    } catch (BadValueException e) {
      return Answer.badRequest(e);
    }
  }

  /** Starts to record for {@code seconds}: 200 with the events' names, or 409 while it records. */
  synchronized Answer start(String kind, Map<String, Long> words) throws BadValueException {
    int seconds = SECONDS.check(words.getOrDefault(SECONDS.name(), 0L));
    if (!FlightRecorder.isAvailable()) {
      return Answer.error(501, "this JVM has no Flight Recorder");
    }
    if (recording != null && recording.getState() == RecordingState.RUNNING) {
      return Answer.error(409, "a recording is under way");
    }
    close();
    Recording next = new Recording();
    events = enable(next, kind);
    next.setDuration(Duration.ofSeconds(seconds));
    next.setMaxSize(MOST_BYTES);
    next.start();
    recording = next;
    return Answer.ok(Map.of("events", events));
  }

  /**
   * Ends the recording and forgets it. What ended before {@code from_ms} or after {@code to_ms}, ms
   * since 1970, is left out. The answer has the stacks, the weight of each, in samples (CPU), bytes
   * (ALLOC) or nanoseconds of waiting (LOCK), and the page of their flame graph; or is a 409 where
   * there is no recording, or it ended before {@code to_ms}.
   */
  synchronized Answer end(Map<String, Long> words) throws IOException {
    Recording ended = recording;
    if (ended == null) {
      return Answer.error(409, "nothing was recorded");
    }
    try {
      Instant from = Instant.ofEpochMilli(words.getOrDefault("from_ms", 0L));
      Instant to = Instant.ofEpochMilli(words.getOrDefault("to_ms", Long.MAX_VALUE));
      if (ended.getState() == RecordingState.RUNNING) {
        ended.stop();
      } else if (words.containsKey("to_ms") && ended.getStopTime().isBefore(to)) {
        return Answer.error(409, "the recording was stopped before the end of what was asked for");
      }
      Map<String, Object> body = new LinkedHashMap<>();
      body.put("events", events);
      body.put("whole", ended.getSize() < SURELY_WHOLE_BYTES);
      Path file = Files.createTempFile("recording", ".jfr");
      try {
        ended.dump(file);
        read(file, from, to, body);
      } finally {
        Files.delete(file);
      }
      return Answer.ok(body);
    } finally {
      close();
    }
  }

  @Override
  public synchronized void close() {
    if (recording != null) {
      recording.close();
      recording = null;
    }
  }

  private static List<String> enable(Recording next, String kind) {
    return switch (kind) {
      case CPU -> {
        if (isKnown(CPU_TIME_SAMPLE)) {
          // Shorter than a tick of most kernels (4 ms), so that every tick is a sample: with 5 ms
          // what runs in long bursts got a larger share than its own.
          next.enable(CPU_TIME_SAMPLE).with("throttle", "2ms");
          next.enable(LOST_SAMPLES);
          yield List.of(CPU_TIME_SAMPLE);
        }
        next.enable(EXECUTION_SAMPLE).withPeriod(Duration.ofMillis(10));
        yield List.of(EXECUTION_SAMPLE);
      }
      case ALLOC -> {
        next.enable(ALLOCATION_SAMPLE).with("throttle", "300/s").withStackTrace();
        yield List.of(ALLOCATION_SAMPLE);
      }
      case LOCK -> {
        for (String wait : Waits.EVENTS) {
          next.enable(wait).withThreshold(Duration.ofMillis(1)).withStackTrace();
        }
        yield Waits.EVENTS;
      }
      default -> throw new IllegalArgumentException("no kind of recording: " + kind);
    };
  }

  private static boolean isKnown(String event) {
    return FlightRecorder.getFlightRecorder().getEventTypes().stream()
        .anyMatch(type -> type.getName().equals(event));
  }

  private static void read(Path file, Instant from, Instant to, Map<String, Object> body)
      throws IOException {
    Map<String, Long> stacks = new TreeMap<>();
    long samples = 0;
    try (RecordingFile recorded = new RecordingFile(file)) {
      while (recorded.hasMoreEvents()) {
        RecordedEvent event = recorded.readEvent();
        Instant at = event.getEndTime();
        if (!at.isBefore(from) && !at.isAfter(to)) {
          samples += count(event, stacks);
        }
      }
    }
    body.put("samples", samples);
    body.put("stacks", stacks);
    body.put("flamegraph", FlameGraphs.page(stacks));
  }

  /** Adds an event to the stacks; returns for how many samples it stands. */
  private static long count(RecordedEvent event, Map<String, Long> stacks) {
    return switch (event.getEventType().getName()) {
      case CPU_TIME_SAMPLE, EXECUTION_SAMPLE -> add(stacks, stack(event, ""), 1, 1);
      case LOST_SAMPLES -> {
        int lost = event.getInt("lostSamples");
        yield add(stacks, "[lost]", lost, lost);
      }
      case ALLOCATION_SAMPLE -> add(stacks, stack(event, ""), event.getLong("weight"), 1);
      case Waits.MONITOR_ENTER -> addWait(stacks, event, "[monitor]");
      case Waits.PINNED -> addWait(stacks, event, "[pinned]");
      case Waits.THREAD_PARK ->
          Waits.parkedOn(event, LOCKS_AND_PERMITS) ? addWait(stacks, event, "[lock]") : 0;
      default -> 0;
    };
  }

  private static long addWait(Map<String, Long> stacks, RecordedEvent event, String what) {
    return add(stacks, stack(event, what), event.getDuration().toNanos(), 1);
  }

  private static long add(Map<String, Long> stacks, String stack, long weight, long samples) {
    stacks.merge(stack, weight, Long::sum);
    return samples;
  }

  /**
   * The frames of an event, the outermost first, as {@code class.method:line} with semicolons
   * between. A wait is the outermost frame, and the innermost the code that waits; empty for none.
   */
  private static String stack(RecordedEvent event, String wait) {
    StringJoiner out = new StringJoiner(";");
    if (!wait.isEmpty()) {
      out.add(wait);
    }
    RecordedStackTrace trace = event.getStackTrace();
    if (trace == null || trace.getFrames().isEmpty()) {
      return out.add("[no stack]").toString();
    }
    if (trace.isTruncated()) {
      out.add("[callers cut off]");
    }
    List<RecordedFrame> frames = trace.getFrames();
    int innermost = 0;
    while (!wait.isEmpty()
        && innermost < frames.size() - 1
        && INSIDE_A_WAIT.matcher(Waits.className(frames.get(innermost))).matches()) {
      innermost++;
    }
    for (int at = frames.size() - 1; at >= innermost; at--) {
      out.add(Waits.text(frames.get(at)));
    }
    return out.toString();
  }
}
