package lab.contract;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.PathMatcher;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** pom.xml lists the classes of the recorder's jar: in a foreign JVM there are no others. */
class RecorderJarTest {
  private static final Pattern INCLUDED =
      Pattern.compile("<include>((?:lab/contract|one/convert)/[^<]+\\.class)</include>");
  private static final Path CLASSES = Path.of("target", "classes");

  @Test
  void itHasEveryClassThatItsClassesName(@TempDir Path jar) throws Exception {
    Matcher included = INCLUDED.matcher(Files.readString(Path.of("pom.xml")));
    List<String> patterns = included.results().map(one -> one.group(1)).toList();
    assertThat(patterns).contains("lab/contract/RecorderAgent.class");
    for (String pattern : patterns) {
      assertThat(copied(pattern, jar)).as(pattern).isPositive();
    }
    assertThat(missing(jar)).isEmpty();
  }

  /** How many classes are copied to the jar's folder. */
  private static int copied(String pattern, Path jar) throws Exception {
    PathMatcher matches = FileSystems.getDefault().getPathMatcher("glob:" + pattern);
    int count = 0;
    try (Stream<Path> all = Files.walk(CLASSES)) {
      for (Path one : all.filter(path -> matches.matches(CLASSES.relativize(path))).toList()) {
        Path copy = jar.resolve(CLASSES.relativize(one));
        Files.createDirectories(copy.getParent());
        Files.copy(one, copy);
        count++;
      }
    }
    return count;
  }

  /** What jdeps says of classes that are neither there nor the JDK's. */
  private static String missing(Path jar) {
    ToolProvider jdeps = ToolProvider.findFirst("jdeps").orElseThrow();
    var said = new StringWriter();
    var out = new PrintWriter(said);
    // Its own filter leaves out what is of the same package.
    int status = jdeps.run(out, out, "--missing-deps", "-filter:none", jar.toString());
    assertThat(status).as(said.toString()).isZero();
    return said.toString();
  }
}
