package lab.perconnection;

import lab.shell.LabServer;
import lab.shell.ServerModel;
import lab.work.blocking.Demonstrations;

/** Model {@code thread-per-connection}: a virtual thread for every connection, and no library. */
public final class ThreadPerConnection {
  public static final ServerModel MODEL =
      new ServerModel("thread-per-connection", Demonstrations.routes(), ConnectionServer::start);

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
