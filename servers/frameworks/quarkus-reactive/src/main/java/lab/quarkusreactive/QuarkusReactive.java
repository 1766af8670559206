package lab.quarkusreactive;

import io.quarkus.runtime.annotations.QuarkusMain;
import lab.quarkus.QuarkusHttp;
import lab.shell.LabServer;
import lab.shell.ServerModel;

/** Model {@code quarkus-reactive}: Quarkus' event loops, composed with Mutiny. */
@QuarkusMain
public final class QuarkusReactive {
  public static final ServerModel MODEL = QuarkusHttp.model("quarkus-reactive");

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
