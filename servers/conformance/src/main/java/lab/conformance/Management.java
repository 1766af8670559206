package lab.conformance;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.HexFormat;

/** Speaks to a management port. */
record Management(HttpClient client, int port) {
  private static final String TOKEN = "token of the tests";

  /** The setting by which a server knows the token, as a model and as a framework that ships. */
  static String tokenSums(String model) {
    try {
      byte[] sum = MessageDigest.getInstance("SHA-256").digest(TOKEN.getBytes(UTF_8));
      return "%1$s=%2$s,%1$s-shipped=%2$s".formatted(model, HexFormat.of().formatHex(sum));
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError(e);
    }
  }

  HttpResponse<String> call(String method, String path, String body) {
    return callWith(TOKEN, method, path, body);
  }

  /** An empty token is none. */
  HttpResponse<String> callWith(String token, String method, String path, String body) {
    HttpRequest.Builder asked =
        HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
            .timeout(Duration.ofSeconds(60))
            .method(method, BodyPublishers.ofString(body));
    HttpRequest request =
        token.isEmpty() ? asked.build() : asked.header("Lab-Token", token).build();
    try {
      return client.send(request, BodyHandlers.ofString());
    } catch (IOException | InterruptedException e) {
      throw new AssertionError(method + " " + path, e);
    }
  }

  String get(String path) {
    return call("GET", path, "").body();
  }

  /** The value of the sample that starts with these characters; 0 when there is none. */
  double metric(String nameAndLabels) {
    return get("/metrics")
        .lines()
        .filter(line -> line.startsWith(nameAndLabels + " "))
        .mapToDouble(line -> Double.parseDouble(line.substring(nameAndLabels.length() + 1)))
        .sum();
  }
}
