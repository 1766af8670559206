package lab.springmvc;

import java.net.http.HttpClient;
import lab.shell.ModelContext;
import lab.spec.Settings;
import lab.work.blocking.BlockingRoutes;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.http.client.HttpClientSettings;
import org.springframework.boot.http.client.JdkHttpClientBuilder;
import org.springframework.boot.thread.Threading;
import org.springframework.context.annotation.Bean;
import org.springframework.core.env.Environment;
import org.springframework.core.task.VirtualThreadTaskExecutor;
import org.springframework.web.client.RestClient;

/** The application's own beans; the {@link ModelContext} is brought by the contract. */
@SpringBootApplication(proxyBeanMethods = false)
class LabApplication {
  @Bean
  BlockingRoutes routes(ModelContext context, RestClient.Builder clients, Environment environment) {
    return BlockingRoutes.ofFramework(
        context,
        () ->
            new RestClientDownstream(
                clients, httpClient(environment, context), context.settings().downstreamUrl()));
  }

  /** As Spring Boot makes it by default; with the lab's, for HTTP/1.1 and without redirects. */
  private static HttpClient httpClient(Environment environment, ModelContext context) {
    JdkHttpClientBuilder builder = new JdkHttpClientBuilder();
    if (!context.settings().shipped()) {
      builder =
          builder.withCustomizer(
              client ->
                  client
                      .version(HttpClient.Version.HTTP_1_1)
                      .followRedirects(HttpClient.Redirect.NEVER));
    }
    if (Threading.VIRTUAL.isActive(environment)) {
      builder = builder.withExecutor(new VirtualThreadTaskExecutor("httpclient-"));
    }
    HttpClient client = builder.build(HttpClientSettings.defaults());
    // A property of the whole JVM's, jdk.httpclient.keepalive.timeout.
    context.knobs().hasNo(Settings.DOWNSTREAM_KEEP_IDLE_S.name());
    context.knobs().ofFramework("client_version", client.version().name());
    context.knobs().ofFramework("client_redirects", client.followRedirects().name());
    return client;
  }
}
