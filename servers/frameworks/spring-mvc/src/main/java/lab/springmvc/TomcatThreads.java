package lab.springmvc;

import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import lab.shell.Knobs;
import lab.shell.ModelContext;
import lab.spec.Settings;
import lab.work.blocking.WorkerPool;
import lab.work.handover.HandOver;
import org.apache.catalina.connector.Connector;
import org.apache.coyote.AbstractProtocol;
import org.apache.coyote.http11.AbstractHttp11Protocol;
import org.apache.tomcat.util.threads.TaskQueue;
import org.apache.tomcat.util.threads.TaskThreadFactory;
import org.apache.tomcat.util.threads.ThreadPoolExecutor;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.boot.tomcat.TomcatWebServer;
import org.springframework.boot.tomcat.servlet.TomcatServletWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.boot.web.server.servlet.context.ServletWebServerInitializedEvent;
import org.springframework.context.event.EventListener;
import org.springframework.core.Ordered;
import org.springframework.stereotype.Component;

/**
 * Sets on Tomcat what Spring Boot has no property for, and puts the hand-over before its threads:
 * before the virtual ones that Spring Boot has set, or else before the pool that Tomcat would make
 * for itself, made here the same way because it hides its own.
 */
@Component
final class TomcatThreads
    implements WebServerFactoryCustomizer<TomcatServletWebServerFactory>, Ordered, DisposableBean {
  private final ModelContext context;
  private @Nullable ThreadPoolExecutor pool;

  TomcatThreads(ModelContext context) {
    this.context = context;
  }

  /** After Spring Boot's own. */
  @Override
  public int getOrder() {
    return LOWEST_PRECEDENCE;
  }

  @Override
  public void customize(TomcatServletWebServerFactory factory) {
    factory.addConnectorCustomizers(
        connector -> customize((AbstractProtocol<?>) connector.getProtocolHandler()));
  }

  @Override
  public void destroy() {
    if (pool != null) {
      var _ = pool.shutdownNow();
    }
  }

  private void customize(AbstractProtocol<?> protocol) {
    Settings settings = context.settings();
    if (!settings.shipped()) {
      // None of Tomcat's own: file descriptors bound connections in every model.
      protocol.setMaxConnections(-1);
    }
    Executor virtual = protocol.getExecutor();
    protocol.setExecutor(virtual == null ? pool(protocol) : new HandOver(virtual, () -> 0));
  }

  /** Tells what Tomcat has in force: before it has started, some of it is not yet. */
  @EventListener
  void tell(ServletWebServerInitializedEvent started) {
    Connector connector = ((TomcatWebServer) started.getWebServer()).getTomcat().getConnector();
    AbstractHttp11Protocol<?> protocol = (AbstractHttp11Protocol<?>) connector.getProtocolHandler();
    Knobs knobs = context.knobs();
    knobs.ofFramework("connections", protocol.getMaxConnections());
    knobs.ofFramework("requests_per_connection", protocol.getMaxKeepAliveRequests());
    knobs.ofFramework("processor_cache", protocol.getProcessorCache());
    knobs.ofFramework("longest_head", protocol.getMaxHttpRequestHeaderSize());
  }

  private HandOver pool(AbstractProtocol<?> protocol) {
    TaskQueue queue = new TaskQueue();
    // Of a protocol that has an executor it is -1.
    int spare = protocol.getMinSpareThreads();
    String name = protocol.getName().replace("\"", "") + "-exec-";
    ThreadPoolExecutor threads =
        new ThreadPoolExecutor(
            Math.min(spare, protocol.getMaxThreads()),
            protocol.getMaxThreads(),
            60,
            TimeUnit.SECONDS,
            queue,
            new TaskThreadFactory(name, true, protocol.getThreadPriority()));
    queue.setParent(threads);
    pool = threads;
    WorkerPool shown =
        WorkerPool.publish(
            threads::getMaximumPoolSize,
            threads::getActiveCount,
            queue::size,
            size -> resize(threads, spare, size),
            context);
    return new HandOver(threads, shown::limit);
  }

  /** Threads beyond the spare ones are started only when Tomcat needs them. */
  private static void resize(ThreadPoolExecutor pool, int spare, int size) {
    // Core must never exceed maximum on the way.
    pool.setCorePoolSize(Math.min(Math.min(spare, size), pool.getMaximumPoolSize()));
    pool.setMaximumPoolSize(size);
    pool.setCorePoolSize(Math.min(spare, size));
  }
}
