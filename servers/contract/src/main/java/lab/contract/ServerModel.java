package lab.contract;

import java.io.IOException;

/** One concurrency model: all that a model's folder has to provide. */
public interface ServerModel {
  /** The kebab-case name: folder, module, image, service and scrape target. */
  String name();

  /** Starts to take requests on the traffic port, with what the contract gives every model. */
  TrafficServer start(ModelContext context) throws IOException;
}
