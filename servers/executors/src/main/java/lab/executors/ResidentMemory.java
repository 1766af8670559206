package lab.executors;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Resident memory of this process as the kernel counts it, in bytes.
 *
 * <p>What is resident now comes from {@code smaps_rollup}, which walks the page tables: the VmRSS
 * of {@code status} is inaccurate by design (proc(5)), on older kernels by up to 64 pages a thread.
 * The peak is VmHWM, the highest since the process began, and has that inaccuracy.
 *
 * @param proc the process' folder, {@code /proc/self}
 */
record ResidentMemory(Path proc) {
  static final ResidentMemory OF_THIS_JVM = new ResidentMemory(Path.of("/proc/self"));

  long nowBytes() throws IOException {
    return kilobytes("smaps_rollup", "Rss:") * 1024;
  }

  long peakBytes() throws IOException {
    return kilobytes("status", "VmHWM:") * 1024;
  }

  private long kilobytes(String file, String field) throws IOException {
    Path path = proc.resolve(file);
    for (String line : Files.readAllLines(path)) {
      if (line.startsWith(field) && line.endsWith("kB")) {
        return Long.parseLong(line.substring(field.length(), line.length() - 2).strip());
      }
    }
    throw new IOException(path + " has no line " + field);
  }
}
