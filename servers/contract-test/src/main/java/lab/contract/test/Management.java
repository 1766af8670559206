package lab.contract.test;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;

/** Speaks to a management port. */
record Management(HttpClient client, int port) {
  HttpResponse<String> call(String method, String path, String body) {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
            .timeout(Duration.ofSeconds(60))
            .method(method, BodyPublishers.ofString(body))
            .build();
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
