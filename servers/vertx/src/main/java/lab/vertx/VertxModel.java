package lab.vertx;

import java.io.IOException;
import lab.contract.LabServer;
import lab.contract.ModelContext;
import lab.contract.ServerModel;
import lab.contract.TrafficServer;

/**
 * Models {@code vertx}: Vert.x, a verticle for every event loop, levelled with the models that have
 * no framework; and {@code vertx-shipped}, which keeps what Vert.x brings. What tells them apart is
 * the variable {@code FRAMEWORK}, {@code levelled} or {@code shipped}.
 */
public final class VertxModel {
  public static final ServerModel LEVELLED = model("vertx", false);
  public static final ServerModel SHIPPED = model("vertx-shipped", true);

  private VertxModel() {}

  public static void main(String[] args) throws InterruptedException {
    String asked = System.getenv().getOrDefault("FRAMEWORK", "levelled");
    LabServer.main(
        switch (asked) {
          case "levelled" -> LEVELLED;
          case "shipped" -> SHIPPED;
          default ->
              throw new IllegalArgumentException(
                  "FRAMEWORK must be levelled or shipped, not '%s'".formatted(asked));
        });
  }

  private static ServerModel model(String name, boolean shipped) {
    return new ServerModel() {
      @Override
      public String name() {
        return name;
      }

      @Override
      public TrafficServer start(ModelContext context) throws IOException {
        return VertxServer.start(context, shipped);
      }
    };
  }
}
