package lab.observe;

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.prometheus.metrics.model.registry.MultiCollector;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.CounterSnapshot.CounterDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot.GaugeDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What the kernel counts in this container's network namespace (proc(5), {@code /proc/net}). Read
 * once per scrape. A number that the kernel does not give has no series: it is never 0 instead.
 */
public final class KernelCounters implements MultiCollector {
  private final Path procNet;
  private final String portSuffix;

  /** Of {@code /proc/net}, normally, and of the accept queue of this port. */
  public KernelCounters(Path procNet, int port) {
    this.procNet = procNet;
    portSuffix = ":%04X".formatted(port);
  }

  @Override
  public MetricSnapshots collect() {
    Map<String, Long> numbers = new HashMap<>();
    readPairedLines("netstat", numbers);
    readPairedLines("snmp", numbers);
    readSockstat("sockstat", numbers);
    readSockstat("sockstat6", numbers);

    MetricSnapshots.Builder out = MetricSnapshots.builder();
    counter(
        out,
        "lab_kernel_listen_overflows",
        "Connections refused a place because an accept queue was full.",
        numbers.get("TcpExt.ListenOverflows"));
    counter(
        out,
        "lab_kernel_listen_drops",
        "Connections dropped on the way into an accept queue, overflows included.",
        numbers.get("TcpExt.ListenDrops"));
    counter(
        out,
        "lab_kernel_tcp_retransmits",
        "TCP segments sent again.",
        numbers.get("Tcp.RetransSegs"));
    counter(
        out,
        "lab_kernel_tcp_syn_retransmits",
        "Of these, attempts to connect: an accept queue was full, or they were lost.",
        numbers.get("TcpExt.TCPSynRetrans"));
    Long inUse4 = numbers.get("TCP.inuse");
    Long inUse6 = numbers.get("TCP6.inuse");
    gauge(
        out,
        "lab_kernel_tcp_sockets_in_use",
        "TCP sockets in use, IPv4 and IPv6.",
        inUse4 == null ? inUse6 : inUse6 == null ? inUse4 : Long.valueOf(inUse4 + inUse6));
    gauge(
        out,
        "lab_kernel_accept_queue_length",
        "Connections that wait in the traffic port's accept queue.",
        acceptQueueLength());
    gauge(out, "lab_kernel_tcp_time_wait", "TCP sockets in TIME_WAIT.", numbers.get("TCP.tw"));
    return out.build();
  }

  /** netstat and snmp: a line of names, then a line of values, both after the same prefix. */
  private void readPairedLines(String file, Map<String, Long> into) {
    List<String> lines = lines(file);
    for (int i = 0; i + 1 < lines.size(); i += 2) {
      String[] names = lines.get(i).split(" ", -1);
      String[] values = lines.get(i + 1).split(" ", -1);
      for (int field = 1; field < Math.min(names.length, values.length); field++) {
        into.put(names[0].replace(':', '.') + names[field], number(values[field]));
      }
    }
  }

  /** sockstat: {@code TCP: inuse 4 orphan 0 tw 0 …} per line. */
  private void readSockstat(String file, Map<String, Long> into) {
    for (String line : lines(file)) {
      String[] fields = line.split(" ", -1);
      for (int field = 1; field + 1 < fields.length; field += 2) {
        into.put(fields[0].replace(':', '.') + fields[field], number(fields[field + 1]));
      }
    }
  }

  /** A Java server listens on both families at once, which the kernel lists as IPv6. */
  private @Nullable Long acceptQueueLength() {
    Long length = acceptQueueLength("tcp6");
    return length != null ? length : acceptQueueLength("tcp");
  }

  /**
   * tcp and tcp6: {@code sl local remote st tx_queue:rx_queue …}, a line per socket, listeners
   * first; there rx_queue is the accept queue. The kernel takes 3 ms for thousands of others, so
   * this reads line by line (0.03 ms) and stops at the port, or at the first that does not listen.
   */
  private @Nullable Long acceptQueueLength(String file) {
    try (InputStream in = Files.newInputStream(procNet.resolve(file))) {
      // About one line: the kernel writes no more of its table than is asked for.
      byte[] chunk = new byte[256];
      StringBuilder line = new StringBuilder();
      boolean header = true;
      for (int count = in.read(chunk); count > 0; count = in.read(chunk)) {
        for (int at = 0; at < count; at++) {
          if (chunk[at] != '\n') {
            line.append((char) chunk[at]);
            continue;
          }
          String[] fields = line.toString().strip().split(" +", 6);
          line.setLength(0);
          if (header) {
            header = false;
            continue;
          }
          // 0A is LISTEN.
          if (fields.length < 6 || !fields[3].equals("0A")) {
            return null;
          }
          if (fields[1].endsWith(portSuffix)) {
            return Long.parseLong(fields[4], fields[4].indexOf(':') + 1, fields[4].length(), 16);
          }
        }
      }
    } catch (IOException e) {
      // As where there is no IPv6.
    }
    return null;
  }

  private List<String> lines(String file) {
    try {
      return Files.readAllLines(procNet.resolve(file), US_ASCII);
    } catch (IOException e) {
      return List.of();
    }
  }

  private static long number(String text) {
    return Long.parseLong(text.strip());
  }

  private static void counter(
      MetricSnapshots.Builder out, String name, String help, @Nullable Long value) {
    if (value != null) {
      out.metricSnapshot(
          CounterSnapshot.builder()
              .name(name)
              .help(help)
              .dataPoint(CounterDataPointSnapshot.builder().value(value).build())
              .build());
    }
  }

  private static void gauge(
      MetricSnapshots.Builder out, String name, String help, @Nullable Long value) {
    if (value != null) {
      out.metricSnapshot(
          GaugeSnapshot.builder()
              .name(name)
              .help(help)
              .dataPoint(GaugeDataPointSnapshot.builder().value(value).build())
              .build());
    }
  }
}
