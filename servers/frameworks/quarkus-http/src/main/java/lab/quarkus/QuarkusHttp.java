package lab.quarkus;

import io.quarkus.runtime.Quarkus;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import lab.shell.ModelContext;
import lab.shell.ServerModel;
import lab.shell.TrafficServer;
import org.jspecify.annotations.Nullable;

/**
 * A Quarkus application as a model. Quarkus is built into one application per JVM and runs on a
 * thread of ours until it is told to exit; what it is built of, the lane's routes, it finds itself.
 */
public final class QuarkusHttp implements TrafficServer {
  private static final Logger LOG = System.getLogger(QuarkusHttp.class.getName());

  private static volatile @Nullable QuarkusHttp current;

  private final ModelContext context;
  private final CompletableFuture<Integer> port = new CompletableFuture<>();
  private final Thread main = Thread.ofPlatform().name("quarkus-main").unstarted(this::run);

  private QuarkusHttp(ModelContext context) {
    this.context = context;
  }

  /** The model whose routes are in the same packaged application. */
  public static ServerModel model(String name) {
    return new ServerModel(
        name,
        context -> {
          QuarkusHttp http = new QuarkusHttp(context);
          current = http;
          http.main.start();
          try {
            var _ = http.port.join();
          } catch (CompletionException e) {
            throw new IOException("Quarkus did not start", e.getCause());
          }
          return http;
        });
  }

  /** The one that is being started, or runs: Quarkus makes its own parts, and they ask here. */
  static QuarkusHttp current() {
    QuarkusHttp http = current;
    if (http == null) {
      throw new IllegalStateException("Quarkus was not started by a model");
    }
    return http;
  }

  /** Whether Quarkus was started by a model: not while it is built. */
  static boolean isStarted() {
    return current != null;
  }

  ModelContext context() {
    return context;
  }

  void started(int actualPort) {
    var _ = port.complete(actualPort);
  }

  @Override
  public int port() {
    return port.join();
  }

  /**
   * Quarkus' own graceful shutdown, whose time is set by {@link LabConfig}: it waits for requests
   * that run, and closes each connection after its next answer; only then it closes the listener.
   */
  @Override
  public void stop(Duration grace) {
    Quarkus.asyncExit();
    try {
      // On top of the grace: for closing what there is to close.
      if (!main.join(grace.plusSeconds(3))) {
        LOG.log(Level.WARNING, "Quarkus has not stopped in time");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void run() {
    Quarkus.run(QuarkusMainLoop.class, this::ended);
  }

  private void ended(int exitCode, @Nullable Throwable failure) {
    var _ =
        port.completeExceptionally(
            failure == null ? new IllegalStateException("exit code " + exitCode) : failure);
  }
}
