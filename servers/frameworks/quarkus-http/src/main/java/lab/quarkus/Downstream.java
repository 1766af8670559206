package lab.quarkus;

import io.smallrye.mutiny.Uni;
import jakarta.ws.rs.GET;
import org.eclipse.microprofile.rest.client.inject.RegisterRestClient;
import org.jboss.resteasy.reactive.RestResponse;

/** The downstream, as Quarkus' REST client asks it. Its URL and limits are {@link LabConfig}'s. */
@RegisterRestClient(configKey = "downstream")
public interface Downstream {
  @GET
  Uni<RestResponse<byte[]>> get();
}
