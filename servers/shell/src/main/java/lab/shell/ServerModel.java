package lab.shell;

import java.io.IOException;
import java.util.Set;
import lab.spec.BadValueException;
import lab.spec.Route;

/**
 * One concurrency model, of the name of its folder, module, image, service and scrape target, with
 * the routes that it serves, as the driver reads them before any load.
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
