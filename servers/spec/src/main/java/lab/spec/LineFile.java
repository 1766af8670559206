package lab.spec;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The file of {@code /file}. It is in the page cache, so reading it takes CPU, and no disk. */
public final class LineFile implements AutoCloseable {
  /** Lines it has; a request reads the first ones. */
  public static final int LINES = 100_000;

  private final Path path;

  public record Reading(int lines, long characters) {}

  public LineFile() throws IOException {
    path = Files.createTempFile("lab-lines-", ".txt");
    try (BufferedWriter out = Files.newBufferedWriter(path, US_ASCII)) {
      for (int line = 1; line <= LINES; line++) {
        // Written at every start: formatting would take ten times as long.
        out.write("line ");
        out.write(Integer.toString(1_000_000 + line), 1, 6);
        out.write(" of a file made for reading it again\n");
      }
    }
  }

  /** Reads the first lines into memory at once. Blocks for about 1 ms per 10,000 lines. */
  public Reading read(int lines) {
    List<String> all = new ArrayList<>();
    try (BufferedReader in = Files.newBufferedReader(path, US_ASCII)) {
      for (String line = in.readLine(); line != null && all.size() < lines; line = in.readLine()) {
        all.add(line);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return new Reading(all.size(), all.stream().mapToLong(String::length).sum());
  }

  @Override
  public void close() throws IOException {
    Files.deleteIfExists(path);
  }
}
