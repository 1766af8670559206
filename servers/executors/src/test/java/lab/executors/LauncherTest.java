package lab.executors;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The launcher with real child JVMs. */
class LauncherTest {
  private static final List<String> FLAGS = List.of("-Xmx64m", "-XX:+UseSerialGC");

  /** An AOT cache is made of jars only, and in a build the class path has folders. */
  @TempDir private static Path folder;

  private static ChildJvm child;

  @BeforeAll
  static void packTheClassPath() throws Exception {
    List<String> jars = new ArrayList<>();
    for (String part : System.getProperty("java.class.path").split(File.pathSeparator, -1)) {
      if (!part.contains("test-classes")) {
        jars.add(Files.isDirectory(Path.of(part)) ? packed(part, jars.size()) : part);
      }
    }
    child = new ChildJvm(FLAGS, String.join(File.pathSeparator, jars), folder);
  }

  @Test
  void measuresInAFreshJvmEachTime() throws Exception {
    try (Launcher launcher = new Launcher(0, child)) {
      for (String executor : List.of("fixed-pool", "virtual-threads")) {
        String line = measured(launcher, "cold/memory/" + executor + "/10/5/2/0");
        assertThat(line)
            .startsWith(
                "{\"start\":\"cold\",\"purpose\":\"memory\",\"executor\":\""
                    + executor
                    + "\",\"tasks\":10,\"sleep_ms\":5,")
            .contains("\"bound_ms\":" + (executor.equals("fixed-pool") ? 25 : 5) + ",")
            .contains("\"jvm_flags\":[\"--enable-preview\",\"-Xmx64m\",\"-XX:+UseSerialGC\"]");
        assertThat(number(line, "elapsed_us")).isGreaterThanOrEqualTo(5000);
        assertThat(number(line, "heap_peak_bytes"))
            .isGreaterThanOrEqualTo(number(line, "heap_before_bytes"))
            .isPositive();
        assertThat(number(line, "allocated_bytes")).isPositive();
        assertThat(number(line, "resident_before_bytes")).isPositive();
        assertThat(number(line, "resident_after_bytes")).isPositive();
        assertThat(number(line, "platform_threads_peak")).isPositive();
      }
    }
  }

  @Test
  void aCacheIsTrainedInARunOfItsOwnAndUsedByTheNext() throws Exception {
    try (Launcher launcher = new Launcher(0, child)) {
      HttpResponse<String> untrained = post(launcher, "/measure/aot/time/fixed-pool/10/5/2/0");
      assertThat(untrained.statusCode()).isEqualTo(500);
      assertThat(untrained.body()).hasLineCount(1);

      measured(launcher, "train/time/virtual-threads/10/5/2/0");
      assertThat(folder.resolve("virtual-threads.aot")).isNotEmptyFile();
      assertThat(measured(launcher, "aot/time/virtual-threads/10/5/2/0"))
          .contains("\"-XX:AOTCache=")
          .contains("\"-XX:+AlwaysPreTouch\"");
    }
  }

  @Test
  void aWarmJvmHasThePoolsThreadsAlready() throws Exception {
    try (Launcher launcher = new Launcher(0, child)) {
      String line = measured(launcher, "warm/time/fixed-pool/10/5/9/2");
      assertThat(number(line, "rounds_before")).isEqualTo(2);
      assertThat(number(line, "platform_threads_before")).isGreaterThanOrEqualTo(9);
    }
  }

  @Test
  void refusesInOneLine() throws Exception {
    try (Launcher launcher = new Launcher(0, child)) {
      HttpResponse<String> answer = post(launcher, "/measure/cold/time/fixed-pool/0/5/2/0");
      assertThat(answer.statusCode()).isEqualTo(400);
      assertThat(answer.body())
          .isEqualTo("tasks must be a whole number from 1 to 1000000, got '0'\n");
      assertThat(post(launcher, "/elsewhere").statusCode()).isEqualTo(404);
    }
  }

  @Test
  void aJvmThatDoesNotStartIsToldWithItsOwnWords() throws Exception {
    ChildJvm broken = ChildJvm.likeThisOne(List.of("-XX:+NoSuchFlag"));
    try (Launcher launcher = new Launcher(0, broken)) {
      HttpResponse<String> answer = post(launcher, "/measure/cold/time/fixed-pool/1/1/1/0");
      assertThat(answer.statusCode()).isEqualTo(500);
      assertThat(answer.body())
          .startsWith("the JVM ended with status 1: Unrecognized VM option 'NoSuchFlag'")
          .hasLineCount(1);
    }
  }

  @Test
  void aHeapThatIsFullIsSaidToBe() throws Exception {
    ChildJvm small = ChildJvm.likeThisOne(List.of("-Xmx8m", "-XX:+ExitOnOutOfMemoryError"));
    try (Launcher launcher = new Launcher(0, small)) {
      HttpResponse<String> answer = post(launcher, "/measure/cold/memory/fixed-pool/1000000/1/3/0");
      assertThat(answer.statusCode()).isEqualTo(500);
      assertThat(answer.body())
          .startsWith("the JVM's heap was full: 1000000 tasks need a larger one (-Xmx in SERVER_")
          .hasLineCount(1);
    }
  }

  @Test
  void aJvmThatWasKilledIsSaidToWantMemory() throws Exception {
    // As the kernel would: with SIGKILL, when there is no memory left.
    ChildJvm killed = ChildJvm.likeThisOne(List.of("-Xmx8m", "-XX:OnOutOfMemoryError=kill -9 %p"));
    try (Launcher launcher = new Launcher(0, killed)) {
      HttpResponse<String> answer = post(launcher, "/measure/cold/memory/fixed-pool/1000000/1/3/0");
      assertThat(answer.statusCode()).isEqualTo(500);
      assertThat(answer.body())
          .startsWith("the JVM was killed: its heap (-Xmx) and its threads (POOL=3) most likely")
          .hasLineCount(1);
    }
  }

  private static String packed(String classes, int number) {
    Path jar = folder.resolve(number + ".jar");
    int status =
        ToolProvider.findFirst("jar")
            .orElseThrow()
            .run(System.out, System.err, "-cf", jar.toString(), "-C", classes, ".");
    assertThat(status).isZero();
    return jar.toString();
  }

  private static String measured(Launcher launcher, String words) throws Exception {
    HttpResponse<String> answer = post(launcher, "/measure/" + words);
    assertThat(answer.body()).hasLineCount(1);
    assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
    return answer.body();
  }

  private static HttpResponse<String> post(Launcher launcher, String path) throws Exception {
    try (HttpClient client = HttpClient.newHttpClient()) {
      URI uri = URI.create("http://localhost:" + launcher.port() + path);
      return client.send(
          HttpRequest.newBuilder(uri).POST(BodyPublishers.noBody()).build(),
          BodyHandlers.ofString());
    }
  }

  private static long number(String line, String name) {
    Matcher found = Pattern.compile("\"" + name + "\":(\\d+)").matcher(line);
    assertThat(found.find()).isTrue();
    return Long.parseLong(found.group(1));
  }
}
