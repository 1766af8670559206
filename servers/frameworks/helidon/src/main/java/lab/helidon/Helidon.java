package lab.helidon;

import lab.shell.LabServer;
import lab.shell.ServerModel;

/** Model {@code helidon}: Helidon SE, a virtual thread for every connection. */
public final class Helidon {
  public static final ServerModel MODEL = new ServerModel("helidon", HelidonServer::start);

  private Helidon() {}

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
