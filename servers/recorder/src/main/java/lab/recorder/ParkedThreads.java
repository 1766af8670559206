package lab.recorder;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.management.HotSpotDiagnosticMXBean;
import com.sun.management.HotSpotDiagnosticMXBean.ThreadDumpFormat;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Looks at which locks virtual threads wait for, again and again: each thread that is found waiting
 * stands for the time since the look before. So the sum is the mean number of waiting threads times
 * the time, as near as so many looks can tell it.
 *
 * <p>It is the JDK's own thread dump that is read, as nothing else lists virtual threads. It visits
 * every thread, which takes some 0.1 ms each: the more there are, the fewer looks.
 */
final class ParkedThreads implements AutoCloseable {
  interface Found {
    void add(String kind, String site, long waitedNanos);
  }

  /** A thread that waits: the kind of the lock, and where in the code of its own. */
  record Waiting(String kind, String site) {}

  private static final long LEAST_NANOS = TimeUnit.SECONDS.toNanos(1);

  /** A look takes at most this part of the time. */
  private static final int ONE_OF = 20;

  /** In the first line of a thread: {@code #12 "name" virtual WAITING 2026-01-01T00:00:00Z}. */
  private static final String IS_VIRTUAL = "\" virtual ";

  private static final String FRAME = "    at ";
  private static final String PARKED = "    - parking to wait for <";

  private static final Logger LOG = System.getLogger(ParkedThreads.class.getName());

  private final Found found;
  private final Runnable failed;
  private final Runnable died;
  private final Path temporary;
  private final Thread thread;

  /**
   * Starts to look, on a thread of its own.
   *
   * @param failed called after each look that failed
   * @param died called where no look will follow, although nobody closed this: for want of memory
   */
  ParkedThreads(Found found, Runnable failed, Runnable died) {
    this(found, failed, died, Path.of(System.getProperty("java.io.tmpdir")));
  }

  ParkedThreads(Found found, Runnable failed, Runnable died, Path temporary) {
    this.found = found;
    this.failed = failed;
    this.died = died;
    this.temporary = temporary;
    this.thread = Thread.ofPlatform().daemon().name("parked-threads").start(this::look);
  }

  /** Whether this JDK's dumps tell what virtual threads wait for (JDK-8356870). */
  static boolean canBeSeen() {
    return Runtime.version().feature() >= 25;
  }

  @Override
  public void close() {
    thread.interrupt();
  }

  private void look() {
    boolean closed = false;
    try {
      while (true) {
        try {
          Path directory = Files.createTempDirectory(temporary, "parked-threads");
          Path dump = directory.resolve("dump.txt");
          try {
            lookAgainAndAgain(dump);
          } finally {
            Files.deleteIfExists(dump);
            Files.delete(directory);
          }
        } catch (IOException e) {
          LOG.log(Level.WARNING, "virtual threads that wait for locks are not counted", e);
          failed.run();
          TimeUnit.NANOSECONDS.sleep(LEAST_NANOS);
        }
      }
    } catch (InterruptedException e) {
      closed = true;
    } finally {
      if (!closed) {
        died.run();
      }
    }
  }

  private void lookAgainAndAgain(Path dump) throws InterruptedException {
    HotSpotDiagnosticMXBean jvm =
        ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
    long counted = System.nanoTime();
    long pause = LEAST_NANOS;
    while (true) {
      TimeUnit.NANOSECONDS.sleep(pause);
      long begun = System.nanoTime();
      try {
        Files.deleteIfExists(dump);
        jvm.dumpThreads(dump.toString(), ThreadDumpFormat.TEXT_PLAIN);
        List<Waiting> all;
        try (BufferedReader lines = Files.newBufferedReader(dump, UTF_8)) {
          all = read(lines);
        }
        // Only now, as half of a look would be counted again with the next one.
        for (Waiting thread : all) {
          found.add(thread.kind(), thread.site(), begun - counted);
        }
        // After a look that failed, the next one stands for the time of both.
        counted = begun;
      } catch (IOException | RuntimeException e) {
        if (!Thread.currentThread().isInterrupted()) {
          LOG.log(Level.WARNING, "a look at the virtual threads failed", e);
          failed.run();
        }
      }
      pause = Math.max(LEAST_NANOS, (ONE_OF - 1) * (System.nanoTime() - begun));
    }
  }

  /** A dump's virtual threads that wait for a lock or a monitor; fails if it shows no thread. */
  static List<Waiting> read(BufferedReader lines) throws IOException {
    List<Waiting> all = new ArrayList<>();
    boolean isEmpty = true;
    boolean isVirtual = false;
    String kind = null;
    String site = LockWatch.OTHER_SITES;
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      if (line.startsWith("#")) {
        isEmpty = false;
        isVirtual = line.contains(IS_VIRTUAL);
        kind = line.contains(IS_VIRTUAL + "BLOCKED ") ? LockWatch.MONITOR : null;
        site = LockWatch.OTHER_SITES;
      } else if (line.isEmpty()) {
        // So ends every thread.
        if (kind != null) {
          all.add(new Waiting(kind, site));
        }
        kind = null;
      } else if (isVirtual && line.startsWith(PARKED)) {
        String on = line.substring(PARKED.length());
        kind = Waits.LOCKS.matcher(on).matches() ? LockWatch.LOCK : null;
      } else if (isVirtual && line.startsWith(FRAME) && site.equals(LockWatch.OTHER_SITES)) {
        String frame = line.substring(FRAME.length());
        site = Waits.isOfTheJdk(frame) ? site : text(frame);
      }
    }
    if (isEmpty) {
      throw new IOException("a thread dump in which no thread was found");
    }
    return all;
  }

  /** Of {@code a.B.run(B.java:12)}, as a frame of Flight Recorder is written. */
  private static String text(String frame) {
    int place = frame.indexOf('(');
    int colon = frame.indexOf(':', place);
    int line = colon < 0 ? 0 : Integer.parseInt(frame, colon + 1, frame.length() - 1, 10);
    return Waits.text(frame.substring(0, place), line);
  }
}
