package lab.executors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ResidentMemoryTest {
  @Test
  void readsTheKernelsFilesInBytes(@TempDir Path proc) throws Exception {
    Files.writeString(
        proc.resolve("smaps_rollup"),
        "55f0-7ffc ---p 00000000 00:00 0    [rollup]\nRss:               51200 kB\nPss: 1 kB\n");
    Files.writeString(
        proc.resolve("status"), "Name:\tjava\nVmHWM:\t   61440 kB\nVmRSS:\t   51000 kB\n");
    ResidentMemory resident = new ResidentMemory(proc);
    assertThat(resident.nowBytes()).isEqualTo(50L * 1024 * 1024);
    assertThat(resident.peakBytes()).isEqualTo(60L * 1024 * 1024);
  }

  @Test
  void anAbsentLineIsAnErrorAndNotZero(@TempDir Path proc) throws Exception {
    Files.writeString(proc.resolve("status"), "Name:\tjava\n");
    assertThatThrownBy(() -> new ResidentMemory(proc).peakBytes())
        .isInstanceOf(IOException.class)
        .hasMessageContaining("VmHWM");
  }
}
