package lab.work.blocking;

import java.util.Optional;
import java.util.ServiceLoader;
import java.util.Set;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.Route;
import lab.spec.RouteCall;

/** The routes that do several things at once. Preview classes: no JDK but one loads them. */
public interface Demonstrations {
  /** Found by {@link ServiceLoader}. */
  interface Source {
    Demonstrations of(ModelContext context);
  }

  /** The JDK that the module {@code structured} is compiled for. */
  int JDK = 25;

  /** Returns the answer, on the calling thread, when all branches have ended. */
  Answer answer(RouteCall call) throws InterruptedException;

  /** The routes of a lane with these demonstrations, where its JVM can have them. */
  static Set<Route> routes() {
    return source().isPresent() ? Route.WITH_DEMONSTRATIONS : Route.COMMON;
  }

  /** Those of a server; without, its lane does not declare their routes, so none is called. */
  static Demonstrations of(ModelContext context) {
    return source()
        .map(source -> source.of(context))
        .orElse(
            call -> {
              throw new IllegalStateException(call.route().path() + " is not served");
            });
  }

  private static Optional<Source> source() {
    return Runtime.version().feature() == JDK
        ? ServiceLoader.load(Source.class).findFirst()
        : Optional.empty();
  }
}
