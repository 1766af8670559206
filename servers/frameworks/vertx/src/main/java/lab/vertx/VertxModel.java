package lab.vertx;

import java.io.IOException;
import lab.contract.LabServer;
import lab.contract.ModelContext;
import lab.contract.ServerModel;
import lab.contract.TrafficServer;

/** Model {@code vertx}: Vert.x, a verticle for every event loop. */
public final class VertxModel {
  public static final ServerModel MODEL =
      new ServerModel() {
        @Override
        public String name() {
          return "vertx";
        }

        @Override
        public TrafficServer start(ModelContext context) throws IOException {
          return VertxServer.start(context);
        }
      };

  private VertxModel() {}

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
