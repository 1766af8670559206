package lab.vertx;

import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.PoolOptions;
import io.vertx.ext.web.client.HttpRequest;
import io.vertx.ext.web.client.HttpResponse;
import io.vertx.ext.web.client.WebClient;
import io.vertx.ext.web.client.WebClientOptions;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import lab.contract.Settings;
import lab.contract.nonblocking.DownstreamCalls;

/** Vert.x's WebClient. A call's connection is of the loop that the call is begun on. */
final class WebClientDownstream implements DownstreamCalls.Client {
  private static final int OK = 200;
  private static final int UNBOUNDED = -1;

  private final HttpRequest<Buffer> request;

  WebClientDownstream(Vertx vertx, Settings settings) {
    WebClient client =
        WebClient.create(
            vertx,
            new WebClientOptions()
                .setFollowRedirects(false)
                .setConnectTimeout((int) settings.downstreamTimeout().toMillis()),
            new PoolOptions()
                .setHttp1MaxSize(Settings.DOWNSTREAM_CONNECTIONS.max())
                .setMaxWaitQueueSize(UNBOUNDED));
    request = client.getAbs(settings.downstreamUrl().toString());
  }

  @Override
  public CompletionStage<byte[]> get(Duration remaining) {
    long millis = remaining.toMillis() + 1;
    // The request's own timeout begins anew with each phase, but it is what breaks the call off.
    return request
        .copy()
        .timeout(millis)
        .send()
        .timeout(millis, TimeUnit.MILLISECONDS)
        .compose(WebClientDownstream::body)
        .toCompletionStage();
  }

  private static Future<byte[]> body(HttpResponse<Buffer> response) {
    Buffer body = response.body();
    return response.statusCode() == OK && body != null
        ? Future.succeededFuture(body.getBytes())
        : Future.failedFuture(new IOException("status " + response.statusCode()));
  }
}
