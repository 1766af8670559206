package lab.quarkus;

import jakarta.ws.rs.core.HttpHeaders;
import lab.spec.Answer;
import org.jboss.resteasy.reactive.RestResponse;

/** The contract's answers as what Quarkus' routes return. */
public final class Responses {
  private Responses() {}

  public static RestResponse<byte[]> of(Answer answer) {
    return RestResponse.ResponseBuilder.create(RestResponse.Status.OK, answer.body())
        .status(answer.status())
        .header(HttpHeaders.CONTENT_TYPE, answer.contentType())
        .build();
  }
}
