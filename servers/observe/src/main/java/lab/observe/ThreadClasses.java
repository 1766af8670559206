package lab.observe;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.prometheus.metrics.model.registry.MultiCollector;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.CounterSnapshot.CounterDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot.GaugeDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;

/**
 * How long the platform threads of each class ran on a CPU, and how long they were ready to run and
 * waited for one, as the kernel counts it (proc(5), {@code /proc/self/task/<id>/schedstat}). Read
 * once per scrape.
 *
 * <p>Of a class with more than 64 threads a sample is read, and its times are scaled to all. It
 * stays the same until threads begin or end. The sums never fall: what a thread had when it was
 * last read stays in them.
 */
public final class ThreadClasses implements MultiCollector {
  /** What a thread does, by how its name begins: the first that matches. Linux keeps 15 letters. */
  private enum Work {
    /** The VM thread leads collections, and is the serial collector; its other work is little. */
    COLLECTOR("GC Thread#|G1 |ZWorker|ZDriver|Shenandoah|VM Thread"),
    COMPILER("C[12] Comp|JVMCI"),
    /** They read requests and hand them to workers. Each is counted alone. */
    FRONT("front-"),
    LOOP("loop-|netty-loop-|vert\\.x-event|reactor-http-"),
    WORKER("pool-|connection-|helper-|netty-helper-|http-nio-\\d+-e|executor-thread|vert\\.x-work"),
    /** The JDK's scheduler of virtual threads is the first ForkJoinPool of a JVM. */
    CARRIER("ForkJoinPool-1-"),
    /** They accept connections, or wait for sockets and hand these on. */
    ACCEPTOR("acceptor|http-nio|HTTP-Disp|HttpClient-|vert\\.x-acc|.*Poller|VirtualThread-"),
    /** The management port, the exporters, and what the lab measures with. */
    MANAGEMENT("management-|prometheus-|RMI |lag|lab-recorder|parked-threads"),
    OTHER("");

    private final Pattern name;

    Work(String name) {
      this.name = Pattern.compile(name);
    }

    Labels labels() {
      return Labels.of("threads", name().toLowerCase(Locale.ROOT));
    }

    static Labels labelsOf(String thread) {
      for (Work work : values()) {
        if (work.name.matcher(thread).lookingAt()) {
          return work == FRONT ? work.labels().add("front", thread) : work.labels();
        }
      }
      throw new AssertionError(thread);
    }
  }

  /** Nanoseconds on a CPU, and in its run queue. */
  private record Times(long run, long queue) {
    private static final Times NONE = new Times(0, 0);
  }

  private static final class Task {
    private final Path directory;
    private Labels labels = Labels.EMPTY;
    private int looks;
    private Times last = Times.NONE;

    Task(Path directory) {
      this.directory = directory;
    }

    /** A new thread has the name of its parent until it has its own: it is read twice. */
    void look() throws IOException {
      if (looks < 2) {
        labels = Work.labelsOf(Files.readString(directory.resolve("comm"), UTF_8).strip());
        looks++;
      }
    }

    Times read() throws IOException {
      String[] numbers = Files.readString(directory.resolve("schedstat"), UTF_8).split(" ", 3);
      return new Times(Long.parseLong(numbers[0]), Long.parseLong(numbers[1]));
    }

    /** Spreads the sample over the numbers, and so over the ages, of a class's threads. */
    int rank() {
      return directory.hashCode() * 0x9E3779B9;
    }

    /** Throws unless it has ended: one that cannot be read, for want of a descriptor, goes on. */
    void ended(IOException reason) throws IOException {
      if (Files.exists(directory)) {
        throw reason;
      }
    }
  }

  /** Threads that are counted together, and the nanoseconds of all that there ever were. */
  private static final class Group {
    private int threads;
    private List<Task> sample = List.of();
    private double run;
    private double queue;

    /** Takes its threads anew. What an older one had before it is read is in the sums already. */
    void choose(List<Task> all) throws IOException {
      List<Task> before = sample;
      all.sort(Comparator.comparingInt(Task::rank));
      threads = all.size();
      sample = all.subList(0, Math.min(threads, SAMPLE));
      for (Task task : sample) {
        if (!before.contains(task)) {
          read(task, task.looks > 1);
        }
      }
    }

    /** Returns whether none has ended, and all have the numbers that they had. */
    boolean read() throws IOException {
      boolean all = true;
      for (Task task : sample) {
        all &= read(task, false);
      }
      return all;
    }

    private boolean read(Task task, boolean isCounted) throws IOException {
      try {
        Times now = task.read();
        // The number of a thread that has ended was given to another one, perhaps of another class.
        boolean isOther = now.run < task.last.run;
        if (isOther) {
          task.looks = 0;
        }
        if (!isCounted) {
          Times before = isOther ? Times.NONE : task.last;
          double scale = (double) threads / sample.size();
          run += scale * (now.run - before.run);
          queue += scale * Math.max(0, now.queue - before.queue);
        }
        task.last = now;
        return !isOther;
      } catch (IOException e) {
        task.ended(e);
        return false;
      }
    }
  }

  private static final int SAMPLE = 64;

  /** It looks for threads after so many scrapes even if their number is the same. */
  private static final int SCRAPES = 10;

  private final Path directory;
  private final Map<Path, Task> tasks = new HashMap<>();
  private final Map<Labels, Group> groups = new TreeMap<>();
  private int links;
  private int scrapesLeft;

  /**
   * @param self normally {@code /proc/self}
   */
  public ThreadClasses(Path self) {
    directory = self.resolve("task");
    for (Work work : Work.values()) {
      groups.put(work.labels(), new Group());
    }
    // Each of them is a group.
    groups.remove(Work.FRONT.labels());
  }

  @Override
  public synchronized MetricSnapshots collect() {
    try {
      boolean all = true;
      for (Group group : groups.values()) {
        all &= group.read();
      }
      // Each thread is a subdirectory, which is a link to this one.
      int now = (int) Files.getAttribute(directory, "unix:nlink");
      if (!all || now != links || --scrapesLeft <= 0) {
        scrapesLeft = look() ? 1 : SCRAPES;
        links = now;
      }
    } catch (IOException | NumberFormatException | ArrayIndexOutOfBoundsException e) {
      return MetricSnapshots.of();
    }
    return snapshots();
  }

  /**
   * Finds the threads. HotSpot starts some when it first needs them. A look takes time by their
   * number, of which a pool may have 5,000.
   *
   * @return whether there are new ones
   */
  private boolean look() throws IOException {
    boolean hasNew = false;
    Set<Path> there = new HashSet<>();
    Map<Labels, List<Task>> found = new HashMap<>();
    try (DirectoryStream<Path> all = Files.newDirectoryStream(directory)) {
      for (Path path : all) {
        Task task = tasks.computeIfAbsent(path, Task::new);
        try {
          task.look();
          there.add(path);
          hasNew |= task.looks == 1;
          found.computeIfAbsent(task.labels, any -> new ArrayList<>()).add(task);
        } catch (IOException e) {
          task.ended(e);
        }
      }
    }
    tasks.keySet().retainAll(there);
    found.keySet().forEach(labels -> groups.computeIfAbsent(labels, any -> new Group()));
    for (Map.Entry<Labels, Group> group : groups.entrySet()) {
      group.getValue().choose(found.getOrDefault(group.getKey(), new ArrayList<>()));
    }
    return hasNew;
  }

  private MetricSnapshots snapshots() {
    CounterSnapshot.Builder run =
        CounterSnapshot.builder()
            .name("lab_thread_run_seconds")
            .help("Time in which the threads of a class ran on a CPU.");
    CounterSnapshot.Builder queue =
        CounterSnapshot.builder()
            .name("lab_thread_runq_seconds")
            .help("Time in which the threads of a class were ready to run and waited for a CPU.");
    GaugeSnapshot.Builder threads =
        GaugeSnapshot.builder().name("lab_threads").help("Platform threads of a class.");
    GaugeSnapshot.Builder read =
        GaugeSnapshot.builder()
            .name("lab_threads_read")
            .help("Threads of a class of which the times are read; they stand for all.");
    groups.forEach(
        (labels, group) -> {
          run.dataPoint(counter(group.run, labels));
          queue.dataPoint(counter(group.queue, labels));
          threads.dataPoint(new GaugeDataPointSnapshot(group.threads, labels, null));
          read.dataPoint(new GaugeDataPointSnapshot(group.sample.size(), labels, null));
        });
    // A kernel that does not count gives 0 0 0 for each thread.
    boolean isKnown = groups.values().stream().anyMatch(group -> group.run > 0);
    return isKnown
        ? MetricSnapshots.of(run.build(), queue.build(), threads.build(), read.build())
        : MetricSnapshots.of(threads.build(), read.build());
  }

  private static CounterDataPointSnapshot counter(double nanos, Labels labels) {
    return CounterDataPointSnapshot.builder().value(nanos / 1e9).labels(labels).build();
  }
}
