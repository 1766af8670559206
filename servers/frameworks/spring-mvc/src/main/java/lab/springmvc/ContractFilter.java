package lab.springmvc;

import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpFilter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import lab.observe.RequestMetrics;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.Outcome;
import lab.spec.RouteCall;
import lab.work.handover.HandOver;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.stereotype.Component;
import org.springframework.web.servlet.DispatcherServlet;

/** What the contract asks of every route, on the request's thread: resolves, refuses, counts. */
@Component
@Order(Ordered.HIGHEST_PRECEDENCE)
final class ContractFilter extends HttpFilter {
  /** The request attribute with the {@link RouteCall}. */
  static final String CALL = "lab.call";

  private static final long serialVersionUID = 1;
  private static final Logger LOG = System.getLogger(ContractFilter.class.getName());

  private final transient ModelContext context;

  ContractFilter(ModelContext context) {
    this.context = context;
  }

  @Override
  protected void doFilter(
      HttpServletRequest request, HttpServletResponse response, FilterChain chain) {
    // Tomcat works on what a client sent in advance in one go with the request before.
    HandOver.Ticket ticket = HandOver.begin();
    RouteCall call =
        context.resolve(request.getMethod(), request.getServletPath(), request.getQueryString());
    RequestMetrics requests = context.requests();
    requests.begun(call.route());
    Outcome outcome = Outcome.ABORTED;
    try {
      response.setHeader(ModelContext.MODEL_HEADER, context.model());
      Answer refusal = ticket.rejected() ? Answer.QUEUE_FULL : call.refusal();
      if (refusal != null) {
        ticket.leave();
        outcome = send(response, refusal);
      } else {
        request.setAttribute(CALL, call);
        outcome = work(request, response, chain);
      }
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "the client was gone before its answer", e);
    } finally {
      requests.ended(
          call.route(),
          outcome,
          ticket.begunNanos() - ticket.handedOverNanos(),
          System.nanoTime() - ticket.begunNanos());
    }
  }

  private static Outcome work(
      HttpServletRequest request, HttpServletResponse response, FilterChain chain)
      throws IOException {
    try {
      chain.doFilter(request, response);
    } catch (ServletException | RuntimeException e) {
      if (e.getCause() instanceof InterruptedException) {
        // Stopping: the grace is over.
        Thread.currentThread().interrupt();
        return Outcome.ABORTED;
      }
      LOG.log(Level.ERROR, "a bug: " + request.getServletPath() + " failed", e);
      return send(response, Answer.INTERNAL_ERROR);
    }
    // Spring itself deals with a client that was gone, and leaves this behind.
    if (request.getAttribute(DispatcherServlet.EXCEPTION_ATTRIBUTE) instanceof IOException) {
      return Outcome.ABORTED;
    }
    return Outcome.ofStatus(response.getStatus());
  }

  private static Outcome send(HttpServletResponse response, Answer answer) throws IOException {
    response.setStatus(answer.status());
    response.setContentType(answer.contentType());
    response.setContentLength(answer.body().length);
    if (answer.status() == 405) {
      response.setHeader("Allow", "GET");
    }
    response.getOutputStream().write(answer.body());
    response.flushBuffer();
    return answer.outcome();
  }
}
