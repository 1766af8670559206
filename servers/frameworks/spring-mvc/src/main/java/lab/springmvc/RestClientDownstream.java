package lab.springmvc;

import static java.util.Objects.requireNonNullElseGet;

import java.io.IOException;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.net.http.HttpTimeoutException;
import lab.work.blocking.DownstreamClient;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestClientException;

/** Asks the downstream by {@link RestClient}, which blocks the calling thread. */
final class RestClientDownstream implements DownstreamClient {
  private final RestClient client;
  private final URI url;

  RestClientDownstream(RestClient client, URI url) {
    this.client = client;
    this.url = url;
  }

  @Override
  public byte[] get(long deadlineNanos) throws IOException, InterruptedException {
    try {
      return ScopedValue.where(DeadlineRequestFactory.DEADLINE, deadlineNanos).call(this::ask);
    } catch (RestClientException e) {
      if (Thread.interrupted()) {
        throw new InterruptedException();
      }
      throw reason(e, deadlineNanos);
    }
  }

  /** The HTTP client is a bean of its own and ends with the application. */
  @Override
  public void close() {}

  private byte[] ask() throws IOException {
    ResponseEntity<byte[]> answer = client.get().uri(url).retrieve().toEntity(byte[].class);
    if (answer.getStatusCode() != HttpStatus.OK) {
      throw new IOException("status " + answer.getStatusCode());
    }
    return requireNonNullElseGet(answer.getBody(), () -> new byte[0]);
  }

  private static IOException reason(RestClientException failure, long deadlineNanos) {
    for (Throwable each = failure; each != null; each = each.getCause()) {
      if (each instanceof HttpTimeoutException) {
        return timeout(failure);
      }
      if (each instanceof IOException reason) {
        // At the deadline a body is closed under its reader, which says only that.
        return System.nanoTime() < deadlineNanos ? reason : timeout(failure);
      }
    }
    return new IOException(failure);
  }

  private static IOException timeout(RestClientException failure) {
    SocketTimeoutException timeout = new SocketTimeoutException("deadline");
    timeout.initCause(failure);
    return timeout;
  }
}
