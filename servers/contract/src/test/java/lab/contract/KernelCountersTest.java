package lab.contract;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class KernelCountersTest {
  @TempDir private Path procNet = Path.of("unset");

  @Test
  void readsWhatTheKernelWrites() throws Exception {
    Files.writeString(
        procNet.resolve("netstat"),
        """
        TcpExt: SyncookiesSent ListenOverflows ListenDrops
        TcpExt: 0 12 34
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

  private String exposition() {
    PrometheusRegistry registry = new PrometheusRegistry();
    registry.register(new KernelCounters(procNet));
    return new String(new Exposition(registry, Identity.ofThisJvm("test")).get(), UTF_8);
  }
}
