package lab.springmvc;

import java.util.HashMap;
import java.util.Map;
import lab.shell.LabServer;
import lab.shell.ServerModel;
import lab.spec.Settings;
import lab.spring.SpringServer;
import org.springframework.boot.thread.Threading;
import org.springframework.core.env.StandardEnvironment;

/** Models {@code spring-mvc}, on Tomcat's pool, and {@code spring-mvc-virtual}: one property. */
public final class SpringMvc {
  public static final ServerModel PLATFORM = model("spring-mvc", false);
  public static final ServerModel VIRTUAL = model("spring-mvc-virtual", true);

  /** The one that the environment asks for, as Spring Boot reads it. */
  public static final ServerModel MODEL =
      Threading.VIRTUAL.isActive(new StandardEnvironment()) ? VIRTUAL : PLATFORM;

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }

  private static ServerModel model(String name, boolean virtual) {
    return new ServerModel(
        name,
        context ->
            SpringServer.start(
                LabApplication.class, context, properties(context.settings(), virtual)));
  }

  private static Map<String, Object> properties(Settings settings, boolean virtual) {
    String idle = settings.keepAliveTimeout().toSeconds() + "s";
    Map<String, Object> properties = new HashMap<>();
    properties.put("spring.threads.virtual.enabled", virtual);
    properties.put("server.tomcat.accept-count", settings.backlog());
    properties.put("server.tomcat.keep-alive-timeout", idle);
    // Of a connection that has not sent a request yet, or half of one.
    properties.put("server.tomcat.connection-timeout", idle);
    properties.put("server.tomcat.threads.max", settings.poolSize());
    if (!settings.shipped()) {
      // A connection is kept for as many requests as it brings; 100 is the default.
      properties.put("server.tomcat.max-keep-alive-requests", -1);
      // The state of 200 requests is kept by default: right for 200 threads, not for more.
      properties.put("server.tomcat.processor-cache", -1);
    }
    return properties;
  }
}
