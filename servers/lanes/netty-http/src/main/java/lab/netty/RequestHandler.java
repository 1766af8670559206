package lab.netty;

/** How a model works on a request. */
public interface RequestHandler extends AutoCloseable {
  /**
   * Takes a request that is to be worked on. Called on the connection's event loop, once per
   * request, and must not block it. Sees to it that {@link Exchange#begin} and then {@link
   * Exchange#answer} are called, now or later, on any thread.
   */
  void handle(Exchange exchange);

  /** Breaks off what is still being worked on. Called once, before the loops end. */
  @Override
  void close();
}
