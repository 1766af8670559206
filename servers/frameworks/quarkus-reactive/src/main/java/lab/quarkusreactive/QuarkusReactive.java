package lab.quarkusreactive;

import io.quarkus.runtime.annotations.QuarkusMain;
import lab.contract.LabServer;
import lab.contract.ServerModel;
import lab.quarkus.QuarkusHttp;

/** Model {@code quarkus-reactive}: Quarkus' event loops, composed with Mutiny. */
@QuarkusMain
public final class QuarkusReactive {
  public static final ServerModel MODEL = QuarkusHttp.model("quarkus-reactive");

  private QuarkusReactive() {}

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
