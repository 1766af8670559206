package lab.observe;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * What the container may use, as its cgroup says now. A JVM cannot tell: it rounds a quota of 1.5
 * CPUs up to 2, and its heap says nothing of the container's memory. Versions 1 and 2 of cgroups
 * (kernel documentation, {@code cgroup-v1/cpusets}, {@code scheduler/sched-bwc}, {@code
 * cgroup-v2}). Any thread; a few small files per call.
 */
public final class ContainerLimits {
  private static final Pattern CPUS =
      Pattern.compile("[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*");

  private final Path cgroup;
  private final Path portRange;

  public static ContainerLimits ofThisContainer() {
    return new ContainerLimits(
        Path.of("/sys/fs/cgroup"), Path.of("/proc/sys/net/ipv4/ip_local_port_range"));
  }

  ContainerLimits(Path cgroup, Path portRange) {
    this.cgroup = cgroup;
    this.portRange = portRange;
  }

  /**
   * Returns {@code cpu_quota} in CPUs, {@code memory_limit_bytes}, {@code cpuset} as the kernel
   * lists CPUs (0-1,4), and {@code local_ports}, the first and the last port of its own connections
   * (10000 65535); null where there is no limit, or none can be read.
   */
  public Map<String, Object> asMap() {
    Optional<String> cpuset =
        read("cpuset.cpus.effective")
            .or(() -> read("cpuset/cpuset.effective_cpus"))
            .or(() -> read("cpuset/cpuset.cpus"))
            .filter(text -> CPUS.matcher(text).matches());
    // A quota of as many CPUs as there are is none: so an engine lifts one that was set live.
    int cpus = cpuset.map(ContainerLimits::count).orElse(Integer.MAX_VALUE);
    Map<String, Object> map = new LinkedHashMap<>();
    map.put("cpu_quota", cpuQuota().filter(quota -> quota < cpus).orElse(null));
    map.put("memory_limit_bytes", memoryBytes().orElse(null));
    map.put("cpuset", cpuset.orElse(null));
    map.put("local_ports", ports().orElse(null));
    return map;
  }

  /** How many ports its own connections to one address may have; empty where nothing tells. */
  public Optional<Integer> localPorts() {
    return ports()
        .map(text -> text.split(" ", -1))
        .map(ends -> Integer.parseInt(ends[1]) - Integer.parseInt(ends[0]) + 1);
  }

  private Optional<String> ports() {
    return readAtOnce(portRange)
        .map(text -> text.replaceAll("\\s+", " "))
        .filter(text -> text.matches("[0-9]{1,5} [0-9]{1,5}"));
  }

  private static int count(String cpuset) {
    return Stream.of(cpuset.split(",", -1))
        .map(range -> range.split("-", -1))
        .mapToInt(ends -> Integer.parseInt(ends[ends.length - 1]) - Integer.parseInt(ends[0]) + 1)
        .sum();
  }

  /** Version 2: {@code "150000 100000"} or {@code "max 100000"}; version 1: -1 is no quota. */
  private Optional<Double> cpuQuota() {
    return read("cpu.max")
        .or(
            () ->
                read("cpu/cpu.cfs_quota_us")
                    .flatMap(
                        quota -> read("cpu/cpu.cfs_period_us").map(period -> quota + " " + period)))
        .map(text -> text.split(" ", -1))
        .filter(fields -> fields.length == 2 && isPositive(fields[0]) && isPositive(fields[1]))
        .map(fields -> Double.parseDouble(fields[0]) / Double.parseDouble(fields[1]));
  }

  private Optional<Long> memoryBytes() {
    return read("memory.max")
        .or(() -> read("memory/memory.limit_in_bytes"))
        .filter(ContainerLimits::isPositive)
        .map(Long::parseLong)
        // Version 1 writes "no limit" as the largest multiple of a page.
        .filter(bytes -> bytes < 1L << 60);
  }

  private static boolean isPositive(String text) {
    return text.matches("[1-9][0-9]{0,18}");
  }

  private Optional<String> read(String file) {
    try {
      return Optional.of(Files.readString(cgroup.resolve(file)).strip())
          .filter(text -> !text.isEmpty());
    } catch (IOException e) {
      return Optional.empty();
    }
  }

  /** In one read: a second finds nothing, and {@link Files#readString} begins with one byte. */
  private static Optional<String> readAtOnce(Path file) {
    byte[] text = new byte[64];
    try (InputStream in = Files.newInputStream(file)) {
      return Optional.of(new String(text, 0, Math.max(0, in.read(text)), US_ASCII).strip());
    } catch (IOException e) {
      return Optional.empty();
    }
  }
}
