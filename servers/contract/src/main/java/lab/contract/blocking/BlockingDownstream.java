package lab.contract.blocking;

import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.HttpURLConnection;
import java.net.MalformedURLException;
import java.net.SocketTimeoutException;
import java.net.URL;
import java.util.concurrent.TimeUnit;
import lab.contract.DownstreamMetrics;
import lab.contract.DownstreamOutcome;
import lab.contract.ModelContext;
import lab.contract.Settings;

/**
 * Calls the downstream on the caller's own thread, over kept-alive connections. {@link
 * HttpURLConnection} brings no threads of its own, which at 5,000 connections cost more than the
 * virtual threads that wait.
 */
public final class BlockingDownstream {
  /** Far above what the downstream sends; protects the heap. */
  private static final int MAX_BODY_BYTES = 1 << 20;

  private final URL url;
  private final DownstreamMetrics metrics;
  private final ConnectionCap cap;
  private volatile int timeoutMs;

  BlockingDownstream(ModelContext context) {
    keepConnections();
    Settings settings = context.settings();
    try {
      url = settings.downstreamUrl().toURL();
    } catch (MalformedURLException e) {
      throw new IllegalStateException("the settings let through a bad URL", e);
    }
    metrics = context.downstream();
    cap = new ConnectionCap(settings.downstreamConnections());
    timeoutMs = (int) settings.downstreamTimeout().toMillis();
    context.mbeans().register("DownstreamConnections", cap);
    context.knobs().add(Settings.DOWNSTREAM_CONNECTIONS, cap::getCap, cap::resize);
    context.knobs().add(Settings.DOWNSTREAM_TIMEOUT_MS, () -> timeoutMs, ms -> timeoutMs = ms);
  }

  /**
   * Returns the downstream's body. The deadline holds for waiting for a connection, connecting and
   * each read, so an answer that trickles in can take longer.
   */
  byte[] call() throws DownstreamException, InterruptedException {
    long timeoutNanos = TimeUnit.MILLISECONDS.toNanos(timeoutMs);
    long asked = System.nanoTime();
    if (!cap.enter(timeoutNanos)) {
      metrics.ended(DownstreamOutcome.TIMEOUT, System.nanoTime() - asked, 0);
      throw new DownstreamException(DownstreamOutcome.TIMEOUT, "no connection in time");
    }
    long begun = System.nanoTime();
    DownstreamOutcome outcome = DownstreamOutcome.ERROR;
    try {
      byte[] body = exchange((timeoutNanos - (begun - asked)) / 1_000_000);
      outcome = DownstreamOutcome.OK;
      return body;
    } catch (DownstreamException e) {
      outcome = e.outcome();
      throw e;
    } finally {
      cap.leave();
      metrics.ended(outcome, begun - asked, System.nanoTime() - begun);
    }
  }

  private byte[] exchange(long remainingMs) throws DownstreamException {
    // 0 would mean no timeout.
    int timeout = (int) Math.max(1, remainingMs);
    HttpURLConnection connection = null;
    try {
      connection = (HttpURLConnection) url.openConnection();
      connection.setConnectTimeout(timeout);
      connection.setReadTimeout(timeout);
      connection.setUseCaches(false);
      connection.setInstanceFollowRedirects(false);
      connection.setRequestProperty("Accept", "application/json");
      int status = connection.getResponseCode();
      InputStream stream = status < 400 ? connection.getInputStream() : connection.getErrorStream();
      // Read to its end, whatever the status: only then is the connection used again.
      byte[] body = stream == null ? new byte[0] : stream.readNBytes(MAX_BODY_BYTES + 1);
      if (body.length > MAX_BODY_BYTES) {
        throw new IOException("answer too long");
      }
      if (status != 200) {
        throw new DownstreamException(DownstreamOutcome.ERROR, "status " + status);
      }
      return body;
    } catch (IOException e) {
      if (connection != null) {
        connection.disconnect();
      }
      DownstreamOutcome outcome =
          switch (e) {
            case SocketTimeoutException late -> DownstreamOutcome.TIMEOUT;
            case ConnectException refused -> DownstreamOutcome.REFUSED;
            default -> DownstreamOutcome.ERROR;
          };
      throw new DownstreamException(outcome, String.valueOf(e.getMessage()));
    }
  }

  /**
   * The JDK keeps 5 idle connections for 5 s by default. The lab's cap is {@link ConnectionCap};
   * the JDK's is only opened. These are JVM-wide and read at the first call.
   */
  private static void keepConnections() {
    System.setProperty("http.maxConnections", "65536");
    System.setProperty("http.keepAlive.time.server", "60");
  }
}
