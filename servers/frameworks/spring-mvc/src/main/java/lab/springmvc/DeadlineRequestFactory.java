package lab.springmvc;

import static java.util.Objects.requireNonNull;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.client.AbstractClientHttpRequest;
import org.springframework.http.client.ClientHttpRequest;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.ClientHttpResponse;
import org.springframework.util.CollectionUtils;

/**
 * Makes requests without a body on the JDK's client, each with a deadline. The caller's thread
 * waits for the whole answer until then: with Spring's own factory and a read timeout each answer
 * in time cancels a future, which makes three exceptions. Any number of threads.
 */
record DeadlineRequestFactory(HttpClient client) implements ClientHttpRequestFactory {
  /** A request's attribute: until when the last byte must be read, by {@link System#nanoTime}. */
  static final String DEADLINE = "lab.deadline";

  @Override
  public ClientHttpRequest createRequest(URI uri, HttpMethod method) {
    return new Request(uri, method);
  }

  private final class Request extends AbstractClientHttpRequest {
    private final URI uri;
    private final HttpMethod method;

    Request(URI uri, HttpMethod method) {
      this.uri = uri;
      this.method = method;
    }

    @Override
    public URI getURI() {
      return uri;
    }

    @Override
    public HttpMethod getMethod() {
      return method;
    }

    @Override
    protected OutputStream getBodyInternal(HttpHeaders headers) {
      throw new UnsupportedOperationException("no request of the lab has a body");
    }

    @Override
    protected ClientHttpResponse executeInternal(HttpHeaders headers) throws IOException {
      HttpRequest.Builder request =
          HttpRequest.newBuilder(uri).method(method.name(), BodyPublishers.noBody());
      headers.forEach((name, values) -> values.forEach(value -> request.header(name, value)));
      long deadlineNanos = (Long) requireNonNull(getAttributes().get(DEADLINE));
      HttpResponse<byte[]> answer = send(request.build(), deadlineNanos - System.nanoTime());
      return new Response(
          answer,
          HttpHeaders.readOnlyHttpHeaders(CollectionUtils.toMultiValueMap(answer.headers().map())));
    }
  }

  private record Response(HttpResponse<byte[]> answer, HttpHeaders headers)
      implements ClientHttpResponse {
    @Override
    public HttpStatusCode getStatusCode() {
      return HttpStatusCode.valueOf(answer.statusCode());
    }

    @Override
    public String getStatusText() {
      return "";
    }

    @Override
    public HttpHeaders getHeaders() {
      return headers;
    }

    @Override
    public InputStream getBody() {
      return new ByteArrayInputStream(answer.body());
    }

    @Override
    public void close() {}
  }

  private HttpResponse<byte[]> send(HttpRequest request, long remainingNanos) throws IOException {
    if (remainingNanos <= 0) {
      throw new SocketTimeoutException("no time left to ask in");
    }
    CompletableFuture<HttpResponse<byte[]>> answer =
        client.sendAsync(request, BodyHandlers.ofByteArray());
    try {
      return answer.get(remainingNanos, TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      throw new SocketTimeoutException("deadline");
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("stopped in a downstream call");
    } catch (ExecutionException e) {
      throw e.getCause() instanceof IOException reason ? reason : new IOException(e);
    } finally {
      // Breaks the request off, unless it has ended.
      var _ = answer.cancel(true);
    }
  }
}
