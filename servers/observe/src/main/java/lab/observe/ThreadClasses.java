package lab.observe;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.prometheus.metrics.model.registry.MultiCollector;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.CounterSnapshot.CounterDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * What some classes of threads used, as the kernel counts it (proc(5), {@code
 * /proc/self/task/<id>/schedstat}): the CPU time of the garbage collector's, of the JIT compiler's,
 * and of a server's fronts, with how long the last two waited for a CPU. Read once per scrape.
 *
 * <p>The JDK tells how long collections and compilations last, which is no measure of what they
 * cost: on a full machine a collector and a compiler wait for CPUs too. The CPU time of the
 * collector is told by the JDK from version 26 on (MemoryMXBean.getTotalGcCpuTime); in 25 it is an
 * internal counter, {@code sun.threads.total_gc_cpu_time}, which is the sum of the same threads.
 * That of the compiler it does not tell.
 */
public final class ThreadClasses implements MultiCollector {
  /** What a thread is there for, with how the names of such threads begin. */
  private enum Work {
    /**
     * Threads that do nothing but collect (G1, Parallel, ZGC, Shenandoah). The VM thread leads
     * collections, and is the serial collector; what else it does is little.
     */
    COLLECTS("GC Thread#|G1 |ZWorker|ZDriver|Shenandoah|VM Thread"),
    /** C1 and C2, of which the kernel keeps 15 characters, and Graal's. */
    COMPILES("C[12] CompilerThre|JVMCI"),
    /** They read requests and hand them to workers, in models that have them. */
    FRONTS("front-");

    private final Pattern name;

    Work(String name) {
      this.name = Pattern.compile(name);
    }
  }

  /**
   * Threads that are counted together.
   *
   * @param name of a front, each of which is counted alone; empty for the others
   */
  private record Group(Work work, String name) {}

  /** Nanoseconds on a CPU, and those in which a thread could run and had to wait for one. */
  private record Times(long cpu, long waited) {
    private static final Times NONE = new Times(0, 0);

    Times plus(Times other) {
      return new Times(cpu + other.cpu, waited + other.waited);
    }

    static Times read(Path thread) throws IOException {
      String[] numbers = Files.readString(thread.resolve("schedstat"), UTF_8).split(" ", 3);
      return new Times(Long.parseLong(numbers[0]), Long.parseLong(numbers[1]));
    }
  }

  /** It looks at all threads again after so many scrapes, even if their number is the same. */
  private static final int SCRAPES = 10;

  private static final int NAME_READS = 2;

  private static final double NANOS_PER_SECOND = 1e9;

  private final Path self;

  /** The times of each thread when it was last read, by its directory. */
  private final Map<Group, Map<Path, Times>> threads = new HashMap<>();

  /** Those of threads that have ended: compilers that have nothing to do end. */
  private final Map<Group, Times> ended = new HashMap<>();

  /** Threads of the last look that do other work, and how often their names were read. */
  private Map<Path, Integer> others = Map.of();

  private String threadCount = "";
  private int scrapesLeft;

  /**
   * @param self normally {@code /proc/self}
   */
  public ThreadClasses(Path self) {
    this.self = self;
  }

  @Override
  public synchronized MetricSnapshots collect() {
    List<MetricSnapshot> told = new ArrayList<>();
    try {
      findThreads();
      if (readThreads()) {
        // Another one may have begun as this one ended.
        scrapesLeft = 0;
        findThreads();
        readThreads();
      }
      Times collects = sum(new Group(Work.COLLECTS, ""));
      // A kernel that counts nothing tells 0. No JVM has collectors and compilers that never ran.
      if (collects.cpu > 0) {
        told.add(
            counter(
                "lab_gc_cpu_seconds",
                "CPU time of the garbage collector's threads.",
                List.of(point(collects.cpu, Labels.EMPTY))));
      }
      addBoth(told, "lab_jit", "the JIT compiler's threads", Work.COMPILES);
      addBoth(told, "lab_front", "a thread that reads requests for others", Work.FRONTS);
    } catch (IOException | NumberFormatException | ArrayIndexOutOfBoundsException e) {
      return MetricSnapshots.of();
    }
    return new MetricSnapshots(told);
  }

  private void addBoth(List<MetricSnapshot> told, String name, String who, Work work) {
    List<CounterDataPointSnapshot> cpu = new ArrayList<>();
    List<CounterDataPointSnapshot> waited = new ArrayList<>();
    for (Group group : threads.keySet()) {
      Times times = group.work == work ? sum(group) : Times.NONE;
      if (times.cpu > 0) {
        Labels labels = group.name.isEmpty() ? Labels.EMPTY : Labels.of("front", group.name);
        cpu.add(point(times.cpu, labels));
        waited.add(point(times.waited, labels));
      }
    }
    if (!cpu.isEmpty()) {
      told.add(counter(name + "_cpu_seconds", "CPU time of " + who + ".", cpu));
      told.add(
          counter(name + "_wait_seconds", "Time in which " + who + " waited for a CPU.", waited));
    }
  }

  private Times sum(Group group) {
    Times sum = ended.getOrDefault(group, Times.NONE);
    for (Times one : threads.getOrDefault(group, Map.of()).values()) {
      sum = sum.plus(one);
    }
    return sum;
  }

  /**
   * Reads all known threads again. What one had that has ended since is kept, or that has another
   * name since: a thread that a front has started has the front's name for a moment.
   *
   * @return whether one has ended
   */
  private boolean readThreads() throws IOException {
    boolean anyEnded = false;
    for (Map.Entry<Group, Map<Path, Times>> known : threads.entrySet()) {
      Iterator<Map.Entry<Path, Times>> each = known.getValue().entrySet().iterator();
      while (each.hasNext()) {
        Map.Entry<Path, Times> one = each.next();
        try {
          Times now = Times.read(one.getKey());
          if (known.getKey().equals(groupOf(one.getKey()))) {
            one.setValue(now);
          } else {
            ended.merge(known.getKey(), one.getValue(), Times::plus);
            each.remove();
            anyEnded = true;
          }
        } catch (IOException e) {
          throwUnlessGone(one.getKey(), e);
          ended.merge(known.getKey(), one.getValue(), Times::plus);
          each.remove();
          anyEnded = true;
        }
      }
    }
    return anyEnded;
  }

  /**
   * HotSpot starts threads when it first needs them. To look at all threads costs time by their
   * number (5,000 in a large pool), so this looks again only where their number has changed, and
   * now and then: one may have ended as another began. A name is read twice, and no more: a new
   * thread has that of its parent until it has its own.
   */
  private void findThreads() throws IOException {
    String count = threadCount();
    if (count.equals(threadCount) && --scrapesLeft > 0) {
      return;
    }
    Map<Path, Integer> seen = new HashMap<>();
    try (DirectoryStream<Path> all = Files.newDirectoryStream(self.resolve("task"))) {
      for (Path thread : all) {
        int reads = others.getOrDefault(thread, 0);
        try {
          Group group = reads < NAME_READS ? groupOf(thread) : null;
          if (group != null) {
            threads.computeIfAbsent(group, any -> new HashMap<>()).putIfAbsent(thread, Times.NONE);
          } else {
            seen.put(thread, reads + 1);
          }
        } catch (IOException e) {
          throwUnlessGone(thread, e);
        }
      }
    }
    others = seen;
    threadCount = count;
    scrapesLeft = SCRAPES;
  }

  /** Of status: {@code Threads: 37}. */
  private String threadCount() throws IOException {
    for (String line : Files.readAllLines(self.resolve("status"), UTF_8)) {
      if (line.startsWith("Threads:")) {
        return line;
      }
    }
    throw new IOException("no Threads in " + self.resolve("status"));
  }

  /** What HotSpot has this thread for; null for every other thread. */
  private static @Nullable Group groupOf(Path thread) throws IOException {
    String name = Files.readString(thread.resolve("comm"), UTF_8);
    for (Work work : Work.values()) {
      if (work.name.matcher(name).lookingAt()) {
        return new Group(work, work == Work.FRONTS ? name.strip() : "");
      }
    }
    return null;
  }

  /** A thread that is there and cannot be read, as where no file descriptor is left, is no end. */
  private static void throwUnlessGone(Path thread, IOException reason) throws IOException {
    if (Files.exists(thread)) {
      throw reason;
    }
  }

  private static CounterSnapshot counter(
      String name, String help, List<CounterDataPointSnapshot> points) {
    CounterSnapshot.Builder counter = CounterSnapshot.builder().name(name).help(help);
    points.forEach(counter::dataPoint);
    return counter.build();
  }

  private static CounterDataPointSnapshot point(long nanos, Labels labels) {
    return CounterDataPointSnapshot.builder()
        .value(nanos / NANOS_PER_SECOND)
        .labels(labels)
        .build();
  }
}
