package lab.executors;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The launcher with real child JVMs. */
class LauncherTest {
  private static final List<String> FLAGS = List.of("-Xmx64m", "-XX:+UseSerialGC");

  @Test
  void measuresInAFreshJvmEachTime() throws Exception {
    try (Launcher launcher = new Launcher(0, new ChildJvm(FLAGS))) {
      for (String executor : List.of("fixed-pool", "virtual-threads")) {
        HttpResponse<String> answer = post(launcher, "/measure/" + executor + "/10/5/2");
        assertThat(answer.statusCode()).isEqualTo(200);
        String line = answer.body();
        assertThat(line.lines()).hasSize(1);
        assertThat(line)
            .startsWith("{\"executor\":\"" + executor + "\",\"tasks\":10,\"sleep_ms\":5,")
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
  void refusesInOneLine() throws Exception {
    try (Launcher launcher = new Launcher(0, new ChildJvm(FLAGS))) {
      HttpResponse<String> answer = post(launcher, "/measure/fixed-pool/0/5/2");
      assertThat(answer.statusCode()).isEqualTo(400);
      assertThat(answer.body())
          .isEqualTo("tasks must be a whole number from 1 to 1000000, got '0'\n");
      assertThat(post(launcher, "/elsewhere").statusCode()).isEqualTo(404);
    }
  }

  @Test
  void aJvmThatDoesNotStartIsToldWithItsOwnWords() throws Exception {
    try (Launcher launcher = new Launcher(0, new ChildJvm(List.of("-XX:+NoSuchFlag")))) {
      HttpResponse<String> answer = post(launcher, "/measure/fixed-pool/1/1/1");
      assertThat(answer.statusCode()).isEqualTo(500);
      assertThat(answer.body()).startsWith("the JVM ended with status 1: ").hasLineCount(1);
    }
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
