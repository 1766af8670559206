package lab.quarkus;

import jakarta.inject.Singleton;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import lab.spec.Answer;
import org.jboss.resteasy.reactive.RestResponse;
import org.jboss.resteasy.reactive.server.ServerExceptionMapper;

/** Answers for a route that threw: whatever it throws is a bug. Any thread. */
@Singleton
final class Bugs {
  private static final Logger LOG = System.getLogger(Bugs.class.getName());

  @ServerExceptionMapper
  RestResponse<byte[]> answer(Exception failure) {
    LOG.log(Level.ERROR, "a bug: a route failed", failure);
    return Responses.of(Answer.INTERNAL_ERROR);
  }
}
