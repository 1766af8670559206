package lab.springmvc;

import static java.util.Objects.requireNonNullElseGet;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import lab.work.blocking.DownstreamClient;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestClientException;

/** Asks the downstream by {@link RestClient}, which blocks the calling thread. */
final class RestClientDownstream implements DownstreamClient {
  private final HttpClient http;
  private final RestClient client;
  private final URI url;

  /** The HTTP client is closed with this. */
  RestClientDownstream(RestClient.Builder clients, HttpClient http, URI url) {
    this.http = http;
    this.client = clients.requestFactory(new DeadlineRequestFactory(http)).build();
    this.url = url;
  }

  @Override
  public byte[] get(long deadlineNanos) throws IOException, InterruptedException {
    try {
      ResponseEntity<byte[]> answer =
          client
              .get()
              .uri(url)
              .attribute(DeadlineRequestFactory.DEADLINE, deadlineNanos)
              .retrieve()
              .toEntity(byte[].class);
      if (answer.getStatusCode() != HttpStatus.OK) {
        throw new IOException("status " + answer.getStatusCode());
      }
      return requireNonNullElseGet(answer.getBody(), () -> new byte[0]);
    } catch (RestClientException e) {
      if (Thread.interrupted()) {
        throw new InterruptedException();
      }
      throw e.getCause() instanceof IOException reason ? reason : new IOException(e);
    }
  }

  @Override
  public void close() {
    http.shutdownNow();
  }
}
