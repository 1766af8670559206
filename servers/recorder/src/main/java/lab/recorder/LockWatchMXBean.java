package lab.recorder;

import java.util.Map;

/** What the JMX exporter reads of {@link LockWatch}: {@code lab:type=LockWatch}. */
public interface LockWatchMXBean {
  /** How long a wait must last to count; 0: none is counted. */
  int getThresholdMs();

  /** Looks at the virtual threads that failed since the JVM began: their waits are not counted. */
  long getFailedLooks();

  /** Seconds waited since watching began, by kind, threads and site with a space between. */
  Map<String, Double> getWaitedSeconds();
}
