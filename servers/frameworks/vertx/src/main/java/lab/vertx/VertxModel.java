package lab.vertx;

import lab.shell.LabServer;
import lab.shell.ServerModel;

/** Model {@code vertx}: Vert.x, a verticle for every event loop. */
public final class VertxModel {
  public static final ServerModel MODEL = new ServerModel("vertx", VertxServer::start);

  private VertxModel() {}

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
