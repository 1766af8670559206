package lab.vertx;

import io.prometheus.metrics.core.metrics.Counter;
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
import lab.shell.ModelContext;
import lab.spec.Settings;
import org.jspecify.annotations.Nullable;

/**
 * Vert.x's HTTP client, one for each verticle: with each request its pool looks through all the
 * connections that it has, and would take those of other loops too. Any thread; no call blocks.
 */
final class HttpClientDownstream {
  private static final Logger LOG = System.getLogger(HttpClientDownstream.class.getName());

  private final HttpClient client;

  /** For the second try: a connection of its own for each request. */
  private final HttpClient connecting;

  private final RequestOptions request;
  private final Counter retries;

  /** Connections that have not been asked anything yet. */
  private final Set<HttpConnection> unused = ConcurrentHashMap.newKeySet();

  HttpClientDownstream(Vertx vertx, ModelContext lab) {
    Settings settings = lab.settings();
    retries = lab.downstream().retries();
    client = client(vertx, settings, true);
    connecting = client(vertx, settings, false);
    request = new RequestOptions().setAbsoluteURI(settings.downstreamUrl().toString());
  }

  /** Returns the body of a 200; any other status is a failure. */
  CompletionStage<byte[]> get(Duration remaining) {
    return new Call().answer(remaining.toMillis() + 1).toCompletionStage();
  }

  /** A request has a timeout of its own, but that ends when the answer begins. */
  private final class Call {
    private volatile boolean late;
    private volatile @Nullable HttpClientRequest asked;

    Future<byte[]> answer(long millis) {
      return client
          .request(request)
          .compose(this::ask)
          .compose(HttpClientDownstream::body)
          .timeout(millis, TimeUnit.MILLISECONDS)
          .onFailure(this::failed);
    }

    private Future<HttpClientResponse> ask(HttpClientRequest asking) {
      if (unused.remove(asking.connection())) {
        return send(asking);
      }
      return send(asking).recover(failure -> late ? Future.failedFuture(failure) : askOnceMore());
    }

    /** The downstream had closed a kept connection: on a new one. */
    private Future<HttpClientResponse> askOnceMore() {
      retries.inc();
      return connecting.request(request).compose(this::send);
    }

    private Future<HttpClientResponse> send(HttpClientRequest asking) {
      // Whoever is late from here on has what to break off.
      asked = asking;
      if (late) {
        breakOff(asking);
        return Future.failedFuture(new TimeoutException());
      }
      return asking.send();
    }

    private void failed(Throwable failure) {
      if (failure instanceof TimeoutException) {
        late = true;
        HttpClientRequest asking = asked;
        if (asking != null) {
          breakOff(asking);
        }
      }
    }
  }

  /** Closes its connection, on which somebody may still write an answer. */
  private static void breakOff(HttpClientRequest asking) {
    var _ = asking.connection().close();
  }

  private static Future<byte[]> body(HttpClientResponse response) {
    if (response.statusCode() != 200) {
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
                .setMaxWaitQueueSize(-1))
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
