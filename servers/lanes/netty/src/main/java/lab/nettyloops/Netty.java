package lab.nettyloops;

import lab.netty.NettyHttp;
import lab.shell.LabServer;
import lab.shell.ServerModel;
import lab.spec.Route;

/** Model {@code netty}: Netty's event loops from the client to the downstream and back. */
public final class Netty {
  public static final ServerModel MODEL =
      NettyHttp.model("netty", Route.WITH_DEMONSTRATIONS, LoopHandler::new);

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
