package lab.quarkus;

import jakarta.inject.Singleton;
import jakarta.ws.rs.core.HttpHeaders;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import lab.spec.Answer;
import org.jboss.resteasy.reactive.RestResponse;
import org.jboss.resteasy.reactive.server.ServerExceptionMapper;

/** The contract's answers as what Quarkus' routes return. Any thread. */
@Singleton
public final class Responses {
  private static final Logger LOG = System.getLogger(Responses.class.getName());

  public static RestResponse<byte[]> of(Answer answer) {
    return RestResponse.ResponseBuilder.create(RestResponse.Status.OK, answer.body())
        .status(answer.status())
        .header(HttpHeaders.CONTENT_TYPE, answer.contentType())
        .build();
  }

  /** Answers for a route that threw: whatever it throws is a bug. */
  @ServerExceptionMapper
  RestResponse<byte[]> failed(Exception failure) {
    LOG.log(Level.ERROR, "a bug: a route failed", failure);
    return of(Answer.INTERNAL_ERROR);
  }
}
