package lab.shell;

import java.io.IOException;
import java.util.Set;
import lab.spec.BadValueException;
import lab.spec.Route;

/**
 * One concurrency model: all that a model's folder has to provide.
 *
 * @param name the kebab-case name: folder, module, image, service and scrape target
 * @param routes those that it serves, as the driver reads them before any load
 * @param start starts to take requests on the traffic port
 */
public record ServerModel(String name, Set<Route> routes, Start start) {
  @FunctionalInterface
  public interface Start {
    TrafficServer start(ModelContext context) throws BadValueException, IOException;
  }

  public ServerModel(String name, Start start) {
    this(name, Route.COMMON, start);
  }
}
