package lab.netty;

/** How a model works on a request. */
public interface RequestHandler extends AutoCloseable {
  /**
   * Takes a request, on its event loop, which must not be blocked. Sees to it that {@link
   * Exchange#begin} and then {@link Exchange#answer} are called, now or later, on any thread.
   */
  void handle(Exchange exchange);

  /** Breaks off what is still being worked on. Called once, before the loops end. */
  @Override
  void close();
}
