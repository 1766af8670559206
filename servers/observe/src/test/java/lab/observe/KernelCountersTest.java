package lab.observe;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.prometheus.metrics.expositionformats.PrometheusTextFormatWriter;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class KernelCountersTest {
  private static final String HEADER =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n";

  @TempDir private Path procNet = Path.of("unset");

  @Test
  void readsWhatTheKernelWrites() throws Exception {
    Files.writeString(
        procNet.resolve("netstat"),
        """
        TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPSynRetrans
        TcpExt: 0 12 34 7
        IpExt: InNoRoutes
        IpExt: 5
        """);
    Files.writeString(procNet.resolve("snmp"), "Tcp: InSegs RetransSegs OutRsts\nTcp: 1 56 2\n");
    Files.writeString(
        procNet.resolve("sockstat"),
        "sockets: used 10\nTCP: inuse 7 orphan 0 tw 9 alloc 8 mem 1\nUDP: inuse 1 mem 0\n");
    Files.writeString(procNet.resolve("sockstat6"), "TCP6: inuse 3\nUDP6: inuse 0\n");
    assertThat(exposition())
        .contains("lab_kernel_listen_overflows_total 12.0")
        .contains("lab_kernel_listen_drops_total 34.0")
        .contains("lab_kernel_tcp_retransmits_total 56.0")
        .contains("lab_kernel_tcp_syn_retransmits_total 7.0")
        .contains("lab_kernel_tcp_sockets_in_use 10.0")
        .contains("lab_kernel_tcp_time_wait 9.0");
  }

  @Test
  void whatTheKernelDoesNotGiveIsAbsentAndNotZero() throws Exception {
    Files.writeString(procNet.resolve("sockstat"), "TCP: inuse 7 orphan 0 tw 9 alloc 8 mem 1\n");
    assertThat(exposition())
        .contains("lab_kernel_tcp_sockets_in_use 7.0")
        .doesNotContain("lab_kernel_listen");
  }

  @Test
  void theAcceptQueueIsThatOfTheTrafficPort() throws Exception {
    // 8081 (1F91), then 8080 (1F90) with 26 connections waiting.
    Files.writeString(
        procNet.resolve("tcp6"),
        HEADER + line("1F91", "0A", 3) + line("1F90", "0A", 0x1A) + line("1F90", "01", 9));
    Files.writeString(procNet.resolve("tcp"), HEADER + line("1F90", "0A", 7));
    assertThat(exposition()).contains("lab_kernel_accept_queue_length 26.0");
  }

  @Test
  void aPortOfTheOlderFamilyIsFoundToo() throws Exception {
    Files.writeString(procNet.resolve("tcp6"), HEADER + line("1F91", "0A", 3));
    Files.writeString(procNet.resolve("tcp"), HEADER + line("1F90", "0A", 0));
    assertThat(exposition()).contains("lab_kernel_accept_queue_length 0.0");
  }

  @Test
  void connectionsAreNotReadForIt() throws Exception {
    Files.writeString(
        procNet.resolve("tcp6"),
        HEADER + line("1F91", "0A", 3) + line("1F90", "01", 9) + line("1F90", "0A", 5));
    assertThat(exposition()).doesNotContain("lab_kernel_accept_queue");
  }

  @Test
  void theQueueOfARealListenerIsRead() throws Exception {
    Path real = Path.of("/proc/net");
    assumeThat(real.resolve("tcp")).exists();
    try (ServerSocket listener = new ServerSocket(0);
        Socket first = new Socket("localhost", listener.getLocalPort());
        Socket second = new Socket("localhost", listener.getLocalPort())) {
      // A client is connected before its last packet has put it into the queue.
      String wanted = "lab_kernel_accept_queue_length 2.0";
      long deadline = System.nanoTime() + Duration.ofSeconds(30).toNanos();
      String found = "";
      while (!found.contains(wanted) && System.nanoTime() < deadline) {
        found = exposition(new KernelCounters(real, listener.getLocalPort()));
      }
      assertThat(found).contains(wanted);
      assertThat(first.isConnected() && second.isConnected()).isTrue();
    }
  }

  private static String line(String port, String state, int waiting) {
    return "   0: 00000000:%s 00000000:0000 %s 00000000:%08X 00:00000000 00000000     0        0 1\n"
        .formatted(port, state, waiting);
  }

  private String exposition() {
    return exposition(new KernelCounters(procNet, 8080));
  }

  private static String exposition(KernelCounters counters) {
    PrometheusRegistry registry = new PrometheusRegistry();
    registry.register(counters);
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try {
      PrometheusTextFormatWriter.create().write(out, registry.scrape());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.toString(UTF_8);
  }
}
