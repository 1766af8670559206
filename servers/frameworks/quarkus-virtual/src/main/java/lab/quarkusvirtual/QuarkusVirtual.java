package lab.quarkusvirtual;

import io.quarkus.runtime.annotations.QuarkusMain;
import lab.quarkus.QuarkusHttp;
import lab.shell.LabServer;
import lab.shell.ServerModel;

/** Model {@code quarkus-virtual}: Quarkus with a virtual thread for every request. */
@QuarkusMain
public final class QuarkusVirtual {
  public static final ServerModel MODEL = QuarkusHttp.model("quarkus-virtual");

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
