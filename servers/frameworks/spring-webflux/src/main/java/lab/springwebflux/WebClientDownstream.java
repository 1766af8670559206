package lab.springwebflux;

import static java.util.Objects.requireNonNullElseGet;

import java.io.IOException;
import java.net.URI;
import java.time.Duration;
import java.util.concurrent.CompletionStage;
import lab.work.nonblocking.DownstreamCalls;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Mono;

/** Asks the downstream by {@link WebClient}. No call blocks. */
record WebClientDownstream(WebClient client, URI url) implements DownstreamCalls.Client {
  @Override
  public CompletionStage<byte[]> get(Duration remaining) {
    return client
        .get()
        .uri(url)
        .retrieve()
        .toEntity(byte[].class)
        .flatMap(WebClientDownstream::bodyOf200)
        .timeout(remaining)
        .toFuture();
  }

  private static Mono<byte[]> bodyOf200(ResponseEntity<byte[]> answer) {
    return answer.getStatusCode() == HttpStatus.OK
        ? Mono.just(requireNonNullElseGet(answer.getBody(), () -> new byte[0]))
        : Mono.error(new IOException("status " + answer.getStatusCode()));
  }
}
