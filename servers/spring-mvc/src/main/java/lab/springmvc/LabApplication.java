package lab.springmvc;

import java.net.http.HttpClient;
import lab.contract.ModelContext;
import lab.contract.blocking.BlockingRoutes;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.thread.Threading;
import org.springframework.context.annotation.Bean;
import org.springframework.core.env.Environment;
import org.springframework.core.task.VirtualThreadTaskExecutor;
import org.springframework.web.client.RestClient;

/**
 * What the application is made of beside Spring Boot's own parts. The {@link ModelContext} is a
 * bean that the contract brought.
 */
@SpringBootApplication(proxyBeanMethods = false)
class LabApplication {
  /** As Spring Boot makes it by default, but HTTP/1.1 only and without redirects. */
  @Bean(destroyMethod = "shutdownNow")
  HttpClient httpClient(Environment environment) {
    HttpClient.Builder client =
        HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .followRedirects(HttpClient.Redirect.NEVER);
    if (Threading.VIRTUAL.isActive(environment)) {
      client.executor(new VirtualThreadTaskExecutor("httpclient-"));
    }
    return client.build();
  }

  @Bean
  BlockingRoutes routes(ModelContext context, RestClient.Builder clients, HttpClient httpClient) {
    RestClient client = clients.requestFactory(new DeadlineRequestFactory(httpClient)).build();
    return new BlockingRoutes(
        context, new RestClientDownstream(client, context.settings().downstreamUrl()));
  }
}
