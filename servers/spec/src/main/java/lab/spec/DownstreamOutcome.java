package lab.spec;

import java.net.BindException;
import java.net.ConnectException;
import java.net.UnknownHostException;
import java.nio.channels.UnresolvedAddressException;
import java.util.Locale;

/** How a downstream call ended. */
public enum DownstreamOutcome {
  /** Answered 200 with a complete body. */
  OK,
  /** The deadline passed: waiting for a connection, connecting, or waiting for the answer. */
  TIMEOUT,
  REFUSED,
  /** Broken off, unresolvable, or answered with anything but 200. */
  ERROR;

  /**
   * Of an attempt to connect. The JDK's client wraps any failure in a ConnectException, and one
   * that nobody answered in time (ETIMEDOUT, or a client's limit) differs by its message only.
   */
  public static DownstreamOutcome ofConnect(ConnectException failure) {
    for (Throwable each = failure; each != null; each = each.getCause()) {
      String message = each.getMessage();
      if (message != null && message.toLowerCase(Locale.ROOT).contains("timed out")) {
        return TIMEOUT;
      }
      if (each instanceof BindException
          || each instanceof UnknownHostException
          || each instanceof UnresolvedAddressException) {
        return ERROR;
      }
    }
    return REFUSED;
  }

  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }
}
