package lab.springwebflux;

import io.netty.channel.ChannelOption;
import io.netty.channel.socket.ServerSocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import lab.observe.LoopThreads;
import lab.shell.ModelContext;
import lab.spec.Settings;
import lab.work.DownstreamLimits;
import lab.work.nonblocking.DownstreamCalls;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.reactor.netty.NettyReactiveWebServerFactory;
import org.springframework.boot.reactor.netty.NettyServerCustomizer;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.http.client.ReactorResourceFactory;
import org.springframework.http.client.reactive.ReactorClientHttpConnector;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.netty.http.HttpProtocol;
import reactor.netty.http.client.HttpClient;
import reactor.netty.resources.ConnectionProvider;
import reactor.netty.resources.LoopResources;

/** The application's own beans; the {@link ModelContext} is brought by the contract. */
@SpringBootApplication(proxyBeanMethods = false)
class LabApplication {
  /** Start of the loops' names, as Reactor Netty calls them. */
  private static final String LOOPS = "reactor-http";

  /** Event loops and connections of this server alone, for its clients and for the downstream. */
  @Bean
  ReactorResourceFactory resources(ModelContext context) {
    int loops = loops(context);
    ReactorResourceFactory resources = new ReactorResourceFactory();
    resources.setUseGlobalResources(false);
    resources.setLoopResourcesSupplier(() -> LoopResources.create(LOOPS, loops, true));
    resources.setConnectionProviderSupplier(() -> connections(context));
    // Nothing comes any more: the application stops its server first.
    resources.setShutdownQuietPeriod(Duration.ZERO);
    return resources;
  }

  /** {@link #server} takes the loops itself: Spring Boot's would be native wherever they can. */
  @Bean
  WebServerFactoryCustomizer<NettyReactiveWebServerFactory> withoutResources() {
    return factory -> factory.setResourceFactory(null);
  }

  /** Obeys the lab's settings that Spring Boot has no property for. */
  @Bean
  NettyServerCustomizer server(ModelContext context, ReactorResourceFactory resources) {
    Settings settings = context.settings();
    AtomicInteger open = new AtomicInteger();
    context.knobs().hasLoops(loops(context));
    LoopThreads.register(context.registry(), LOOPS, loops(context), open::get);
    return server -> {
      tellTransport(context, resources.getLoopResources());
      return server
          .runOn(resources.getLoopResources(), settings.shipped())
          .option(ChannelOption.SO_BACKLOG, settings.backlog())
          .childOption(ChannelOption.TCP_NODELAY, true)
          .doOnChannelInit(
              (observer, channel, address) -> {
                open.incrementAndGet();
                channel.pipeline().addFirst(new ContractFilter.Writes());
                channel.closeFuture().addListener(closed -> open.decrementAndGet());
              });
    };
  }

  @Bean
  DownstreamCalls downstream(ModelContext context, ReactorResourceFactory resources) {
    HttpClient http =
        HttpClient.create(resources.getConnectionProvider())
            .runOn(resources.getLoopResources(), context.settings().shipped())
            .protocol(HttpProtocol.HTTP11)
            // A call's own deadline ends the call, not an attempt to connect.
            .option(
                ChannelOption.CONNECT_TIMEOUT_MILLIS,
                (int) context.settings().downstreamTimeout().toMillis())
            .option(ChannelOption.TCP_NODELAY, true);
    WebClient client =
        WebClient.builder().clientConnector(new ReactorClientHttpConnector(http)).build();
    return new DownstreamCalls(
        context, new WebClientDownstream(client, context.settings().downstreamUrl()));
  }

  /**
   * As Reactor Netty will choose it. That a server has been bound is told on a loop, where it may
   * come too late for {@code /settings}.
   */
  private static void tellTransport(ModelContext context, LoopResources loops) {
    boolean shipped = context.settings().shipped();
    var listening = loops.onChannelClass(ServerSocketChannel.class, loops.onServer(shipped));
    boolean nio = listening == NioServerSocketChannel.class;
    context.knobs().ofFramework("transport", nio ? "nio" : "native");
  }

  /** One per CPU, as in the other models; Reactor Netty has four at least. */
  private static int loops(ModelContext context) {
    Settings settings = context.settings();
    return settings.loops(
        settings.shipped()
            ? LoopResources.DEFAULT_IO_WORKER_COUNT
            : Runtime.getRuntime().availableProcessors());
  }

  /** Bounded by nothing of its own: the lab's cap comes first. */
  private static ConnectionProvider connections(ModelContext context) {
    Settings settings = context.settings();
    ConnectionProvider.Builder pool =
        ConnectionProvider.builder("downstream")
            .maxConnections(Settings.DOWNSTREAM_CONNECTIONS.max());
    if (settings.shipped()) {
      context.knobs().hasNo(Settings.DOWNSTREAM_KEEP_IDLE_S.name());
    } else {
      pool.pendingAcquireMaxCount(-1)
          .maxIdleTime(settings.downstreamKeepIdle())
          // Without this only a call looks for connections that have been idle too long.
          .evictInBackground(DownstreamLimits.betweenLooks(settings.downstreamKeepIdle()))
          .lifo();
    }
    return pool.build();
  }
}
