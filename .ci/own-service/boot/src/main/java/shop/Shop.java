package shop;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;

/** A service that asks another one for each of its own answers. */
@SpringBootApplication
@RestController
public class Shop {
  private final RestClient downstream;

  Shop(RestClient.Builder builder, @Value("${downstream.url}") String url) {
    downstream = builder.baseUrl(url).build();
  }

  public static void main(String[] args) {
    SpringApplication.run(Shop.class, args);
  }

  @GetMapping("/health")
  String health() {
    return "ok";
  }

  @GetMapping("/items")
  String items() {
    downstream.get().retrieve().toBodilessEntity();
    return "called";
  }
}
