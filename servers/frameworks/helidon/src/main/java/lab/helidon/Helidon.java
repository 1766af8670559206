package lab.helidon;

import java.io.IOException;
import lab.contract.LabServer;
import lab.contract.ModelContext;
import lab.contract.ServerModel;
import lab.contract.TrafficServer;

/** Model {@code helidon}: Helidon SE, a virtual thread for every connection. */
public final class Helidon {
  public static final ServerModel MODEL =
      new ServerModel() {
        @Override
        public String name() {
          return "helidon";
        }

        @Override
        public TrafficServer start(ModelContext context) throws IOException {
          return HelidonServer.start(context);
        }
      };

  private Helidon() {}

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
