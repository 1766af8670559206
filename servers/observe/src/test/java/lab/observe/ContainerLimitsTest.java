package lab.observe;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.entry;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ContainerLimitsTest {
  @TempDir private Path cgroup = Path.of("unset");

  @Test
  void aQuotaOfCgroupVersion2IsToldInCpusAndNotRoundedUp() throws Exception {
    write("cpu.max", "150000 100000\n");
    write("memory.max", "2147483648\n");
    write("cpuset.cpus.effective", "0-1\n");
    assertThat(limits().asMap())
        .containsExactly(
            entry("cpu_quota", 1.5),
            entry("memory_limit_bytes", 2147483648L),
            entry("cpuset", "0-1"),
            entry("local_ports", null));
  }

  @Test
  void noLimitOfCgroupVersion2IsNull() throws Exception {
    write("cpu.max", "max 100000\n");
    write("memory.max", "max\n");
    assertThat(limits().asMap())
        .containsExactly(
            entry("cpu_quota", null),
            entry("memory_limit_bytes", null),
            entry("cpuset", null),
            entry("local_ports", null));
  }

  @Test
  void theLimitsOfCgroupVersion1() throws Exception {
    write("cpu/cpu.cfs_quota_us", "40000\n");
    write("cpu/cpu.cfs_period_us", "100000\n");
    write("memory/memory.limit_in_bytes", "536870912\n");
    write("cpuset/cpuset.effective_cpus", "1\n");
    assertThat(limits().asMap())
        .containsExactly(
            entry("cpu_quota", 0.4),
            entry("memory_limit_bytes", 536870912L),
            entry("cpuset", "1"),
            entry("local_ports", null));
  }

  @Test
  void noLimitOfCgroupVersion1IsNull() throws Exception {
    write("cpu/cpu.cfs_quota_us", "-1\n");
    write("cpu/cpu.cfs_period_us", "100000\n");
    write("memory/memory.limit_in_bytes", "9223372036854771712\n");
    write("cpuset/cpuset.cpus", "0-3\n");
    assertThat(limits().asMap())
        .containsExactly(
            entry("cpu_quota", null),
            entry("memory_limit_bytes", null),
            entry("cpuset", "0-3"),
            entry("local_ports", null));
  }

  @Test
  void aQuotaOfAllItsCpusIsNone() throws Exception {
    write("cpuset.cpus.effective", "0-1,4\n");
    write("cpu.max", "300000 100000\n");
    assertThat(limits().asMap()).containsEntry("cpu_quota", null);
    write("cpu.max", "290000 100000\n");
    assertThat(limits().asMap()).containsEntry("cpu_quota", 2.9);
  }

  @Test
  void theRangeOfLocalPortsIsToldWithOneSpace() throws Exception {
    write("ip_local_port_range", "10000\t65535\n");
    assertThat(limits().asMap()).containsEntry("local_ports", "10000 65535");
    assertThat(limits().localPorts()).contains(55_536);
    write("ip_local_port_range", "some\n");
    assertThat(limits().asMap()).containsEntry("local_ports", null);
    assertThat(limits().localPorts()).isEmpty();
  }

  @Test
  void whatIsNoNumberIsNoLimit() throws Exception {
    write("cpu.max", "x\n");
    write("memory.max", "-5\n");
    assertThat(limits().asMap())
        .containsEntry("cpu_quota", null)
        .containsEntry("memory_limit_bytes", null);
  }

  private ContainerLimits limits() {
    return new ContainerLimits(cgroup, cgroup.resolve("ip_local_port_range"));
  }

  private void write(String file, String text) throws Exception {
    Path path = cgroup.resolve(file);
    Files.createDirectories(path.getParent());
    Files.writeString(path, text);
  }
}
