package lab.shell;

import java.time.Duration;

/** A model's running server on the traffic port. */
public interface TrafficServer {
  int port();

  /**
   * Stops: takes no new connections at once, lets requests end for at most the grace, then breaks
   * them off. Returns when the port is free and its threads have been told to end. Called once.
   */
  void stop(Duration grace);
}
