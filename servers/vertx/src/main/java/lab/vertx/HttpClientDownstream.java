package lab.vertx;

import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpClient;
import io.vertx.core.http.HttpClientOptions;
import io.vertx.core.http.HttpClientRequest;
import io.vertx.core.http.HttpClientResponse;
import io.vertx.core.http.HttpConnection;
import io.vertx.core.http.PoolOptions;
import io.vertx.core.http.RequestOptions;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import lab.contract.Settings;

/**
 * Vert.x's HTTP client, one for each verticle: with each request its pool looks through all the
 * connections that it has, and would take those of other loops too. Any thread; no call blocks.
 */
final class HttpClientDownstream {
  private static final Logger LOG = System.getLogger(HttpClientDownstream.class.getName());
  private static final int OK = 200;
  private static final int UNBOUNDED = -1;

  private final HttpClient client;

  /** For the second try: a connection of its own for each request. */
  private final HttpClient connecting;

  private final RequestOptions request;

  /** Connections that have not been asked anything yet. */
  private final Set<HttpConnection> unused = ConcurrentHashMap.newKeySet();

  HttpClientDownstream(Vertx vertx, Settings settings) {
    client = client(vertx, settings, true);
    connecting = client(vertx, settings, false);
    request = new RequestOptions().setAbsoluteURI(settings.downstreamUrl().toString());
  }

  /** Returns the body of a 200; any other status is a failure. */
  CompletionStage<byte[]> get(Duration remaining) {
    long millis = remaining.toMillis() + 1;
    // The request's own timeout begins anew with each phase, but it is what breaks the call off.
    RequestOptions options = new RequestOptions(request).setTimeout(millis);
    return client
        .request(options)
        .compose(asking -> ask(asking, options))
        .compose(HttpClientDownstream::body)
        .timeout(millis, TimeUnit.MILLISECONDS)
        .toCompletionStage();
  }

  private Future<HttpClientResponse> ask(HttpClientRequest asking, RequestOptions options) {
    if (unused.remove(asking.connection())) {
      return asking.send();
    }
    return asking
        .send()
        .recover(
            failure ->
                failure instanceof TimeoutException
                    ? Future.failedFuture(failure)
                    // The downstream had closed a kept connection: once more, on a new one.
                    : connecting.request(options).compose(HttpClientRequest::send));
  }

  private static Future<byte[]> body(HttpClientResponse response) {
    if (response.statusCode() != OK) {
      return Future.failedFuture(new IOException("status " + response.statusCode()));
    }
    return response.body().map(Buffer::getBytes);
  }

  private HttpClient client(Vertx vertx, Settings settings, boolean keepAlive) {
    return vertx
        .httpClientBuilder()
        .with(
            new HttpClientOptions()
                .setKeepAlive(keepAlive)
                .setKeepAliveTimeout((int) settings.downstreamKeepIdle().toSeconds())
                .setConnectTimeout((int) settings.downstreamTimeout().toMillis()))
        .with(
            new PoolOptions()
                .setHttp1MaxSize(Settings.DOWNSTREAM_CONNECTIONS.max())
                .setMaxWaitQueueSize(UNBOUNDED))
        .withConnectHandler(this::connected)
        .build();
  }

  private void connected(HttpConnection connection) {
    unused.add(connection);
    var _ =
        connection
            .closeHandler(_ -> unused.remove(connection))
            // The call is told too; without this Vert.x logs it as severe.
            .exceptionHandler(e -> LOG.log(Level.DEBUG, "the downstream broke a connection", e));
  }
}
