package lab.quarkus;

import io.quarkus.runtime.StartupEvent;
import io.vertx.core.Vertx;
import jakarta.enterprise.event.Observes;
import jakarta.inject.Singleton;
import lab.observe.LoopThreads;
import lab.shell.ModelContext;

/** Shows the event loops, and by what they wait. */
@Singleton
final class Loops {
  private static final String THREADS = "vert.x-eventloop-thread-";

  void register(
      @Observes StartupEvent started, ModelContext context, Connections connections, Vertx vertx) {
    context.knobs().hasLoops(connections.loops());
    LoopThreads.register(context.registry(), THREADS, connections.loops(), connections::open);
    boolean isNative = vertx.isNativeTransportEnabled();
    if (context.settings().shipped() && !isNative) {
      throw new IllegalStateException(
          "no native transport", vertx.unavailableNativeTransportCause());
    }
    context.knobs().ofFramework("transport", isNative ? "native" : "nio");
  }
}
