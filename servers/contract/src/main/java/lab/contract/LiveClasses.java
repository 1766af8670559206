package lab.contract;

import java.lang.management.ManagementFactory;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.management.JMException;
import javax.management.ObjectName;

/**
 * Of which classes the live heap is made: the JVM's own class histogram, as {@code jcmd <pid>
 * GC.class_histogram} prints it.
 *
 * <p>Source: the operations of the MBean {@code com.sun.management:type=DiagnosticCommand}, which
 * each JDK from 8 on has.
 */
final class LiveClasses {
  /** Smaller ones are left out: there are thousands. */
  static final long LEAST_BYTES = 1024;

  /** As {@code 1: 5052 425352 [B (java.base@25)}: rank, objects, bytes, class. */
  private static final Pattern LINE = Pattern.compile("\\s*\\d+:\\s+\\d+\\s+(\\d+)\\s+(\\S+).*");

  private LiveClasses() {}

  /**
   * The bytes of each class's objects that are live, most first, by the JVM's own names (arrays are
   * {@code [B}). Stops the JVM for a full collection.
   *
   * @throws JMException where the JVM has no such operation
   */
  static Map<String, Long> now() throws JMException {
    Object told =
        ManagementFactory.getPlatformMBeanServer()
            .invoke(
                new ObjectName("com.sun.management:type=DiagnosticCommand"),
                "gcClassHistogram",
                new Object[] {new String[0]},
                new String[] {String[].class.getName()});
    return read(String.valueOf(told));
  }

  /** Two loaders may have a class of the same name each. */
  static Map<String, Long> read(String histogram) {
    Map<String, Long> found = new LinkedHashMap<>();
    histogram
        .lines()
        .map(LINE::matcher)
        .filter(Matcher::matches)
        .forEach(line -> found.merge(line.group(2), Long.parseLong(line.group(1)), Long::sum));
    found.values().removeIf(bytes -> bytes < LEAST_BYTES);
    return found;
  }
}
