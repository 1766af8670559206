package lab.contract;

import java.io.IOException;
import java.util.Set;

/** One concurrency model: all that a model's folder has to provide. */
public interface ServerModel {
  /** The kebab-case name: folder, module, image, service and scrape target. */
  String name();

  /** The routes it serves, as the driver reads them before any load. */
  default Set<Route> routes() {
    return Route.COMMON;
  }

  /** Starts to take requests on the traffic port, with what the contract gives every model. */
  TrafficServer start(ModelContext context) throws IOException;
}
