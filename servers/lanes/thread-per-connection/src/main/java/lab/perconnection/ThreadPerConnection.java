package lab.perconnection;

import java.io.IOException;
import java.util.Set;
import lab.contract.LabServer;
import lab.contract.ModelContext;
import lab.contract.Route;
import lab.contract.ServerModel;
import lab.contract.TrafficServer;
import lab.contract.blocking.Demonstrations;

/** Model {@code thread-per-connection}: a virtual thread for every connection, and no library. */
public final class ThreadPerConnection {
  public static final ServerModel MODEL =
      new ServerModel() {
        @Override
        public String name() {
          return "thread-per-connection";
        }

        @Override
        public Set<Route> routes() {
          return Demonstrations.routes();
        }

        @Override
        public TrafficServer start(ModelContext context) throws IOException {
          return ConnectionServer.start(context);
        }
      };

  private ThreadPerConnection() {}

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
