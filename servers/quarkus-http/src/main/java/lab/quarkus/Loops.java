package lab.quarkus;

import io.quarkus.runtime.StartupEvent;
import jakarta.enterprise.event.Observes;
import jakarta.inject.Singleton;
import lab.contract.LoopThreads;
import lab.contract.ModelContext;

/** Shows the event loops. */
@Singleton
final class Loops {
  private static final String THREADS = "vert.x-eventloop-thread-";

  void register(@Observes StartupEvent started, ModelContext context, Connections connections) {
    LoopThreads.register(context, THREADS, LabConfig.loops(context.settings()), connections::open);
  }
}
