package lab.perconnection;

import java.io.IOException;
import lab.contract.LabServer;
import lab.contract.ModelContext;
import lab.contract.ServerModel;
import lab.contract.TrafficServer;

/** Model {@code thread-per-connection}: a virtual thread for every connection, and no library. */
public final class ThreadPerConnection {
  public static final ServerModel MODEL =
      new ServerModel() {
        @Override
        public String name() {
          return "thread-per-connection";
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
