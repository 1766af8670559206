package lab.springwebflux;

import java.util.Map;
import lab.shell.LabServer;
import lab.shell.ServerModel;
import lab.spring.SpringServer;

/** Model {@code spring-webflux}: Reactor's types on Reactor Netty's event loops; nothing blocks. */
public final class SpringWebflux {
  public static final ServerModel MODEL =
      new ServerModel(
          "spring-webflux",
          context -> {
            String idle = context.settings().keepAliveTimeout().toSeconds() + "s";
            return SpringServer.start(
                LabApplication.class,
                context,
                Map.of(
                    "server.netty.idle-timeout",
                    idle,
                    // A broken downstream is counted; a stack trace for each would be the load.
                    "logging.level.reactor.netty.http.client.HttpClientConnect",
                    "error"));
          });

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
