package lab.recorder;

import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import jdk.jfr.consumer.RecordedClass;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;

/** What Flight Recorder tells of threads that wait for a lock, and of carriers that are kept. */
public final class Waits {
  static final String MONITOR_ENTER = "jdk.JavaMonitorEnter";
  static final String THREAD_PARK = "jdk.ThreadPark";
  static final String PINNED = "jdk.VirtualThreadPinned";
  static final List<String> EVENTS = List.of(MONITOR_ENTER, THREAD_PARK, PINNED);

  /**
   * What a thread parks on that waits for a lock. A condition, a latch, a semaphore and a queue are
   * other classes: who waits there waits for work, an answer or a permit.
   */
  static final Pattern LOCKS =
      Pattern.compile("java\\.util\\.concurrent\\.locks\\.(Reentrant|StampedLock).*");

  /** What differs from JVM to JVM in the name of a class that was made at run time. */
  private static final Pattern ADDRESS = Pattern.compile("[/+.]0x[0-9a-f]+(/\\d+)?");

  private static final Pattern OF_THE_JDK = Pattern.compile("(java|javax|jdk|sun|com\\.sun)\\..*");

  private Waits() {}

  /** Whether a class, or the module that is written before it, is one of the JDK's. */
  static boolean isOfTheJdk(String name) {
    return OF_THE_JDK.matcher(name).matches();
  }

  /** The innermost frame that is not the JDK's; empty where all are, and without a stack. */
  public static Optional<RecordedFrame> innermostOutsideTheJdk(RecordedEvent event) {
    return Stream.ofNullable(event.getStackTrace())
        .flatMap(trace -> trace.getFrames().stream())
        .filter(frame -> !isOfTheJdk(className(frame)))
        .findFirst();
  }

  /** Whether the thread of a THREAD_PARK parked on an object of such a class. */
  static boolean parkedOn(RecordedEvent park, Pattern classes) {
    RecordedClass on = park.getClass("parkedClass");
    return on != null && classes.matcher(on.getName()).matches();
  }

  /** {@code class.method:line}. */
  static String text(RecordedFrame frame) {
    return text(className(frame) + "." + frame.getMethod().getName(), frame.getLineNumber());
  }

  /** The same of a method with its class; a line that is not positive is not known. */
  static String text(String method, int line) {
    // What parts frames, and a stack from its weight; other languages have such names.
    String name = withoutAddress(method).replace(';', '_').replace(' ', '_');
    return line > 0 ? name + ":" + line : name;
  }

  static String className(RecordedFrame frame) {
    return withoutAddress(frame.getMethod().getType().getName());
  }

  private static String withoutAddress(String name) {
    return ADDRESS.matcher(name).replaceAll("");
  }
}
