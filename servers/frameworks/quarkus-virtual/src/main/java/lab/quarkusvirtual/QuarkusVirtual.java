package lab.quarkusvirtual;

import io.quarkus.runtime.annotations.QuarkusMain;
import lab.contract.LabServer;
import lab.contract.ServerModel;
import lab.quarkus.QuarkusHttp;

/** Model {@code quarkus-virtual}: Quarkus with a virtual thread for every request. */
@QuarkusMain
public final class QuarkusVirtual {
  public static final ServerModel MODEL = QuarkusHttp.model("quarkus-virtual");

  private QuarkusVirtual() {}

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
