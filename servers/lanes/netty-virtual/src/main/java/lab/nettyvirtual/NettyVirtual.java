package lab.nettyvirtual;

import lab.netty.NettyHttp;
import lab.shell.LabServer;
import lab.shell.ServerModel;
import lab.spec.Route;

/** Model {@code netty-virtual}: Netty for the network, a virtual thread for every request. */
public final class NettyVirtual {
  public static final ServerModel MODEL =
      NettyHttp.model(
          "netty-virtual", Route.COMMON, (context, loops) -> new VirtualThreadHandler(context));

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
