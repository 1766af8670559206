package lab.contract;

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
  /** The connection was refused. */
  REFUSED,
  /** Broken off, unresolvable, or answered with anything but 200. */
  ERROR;

  /**
   * Of an attempt to connect. The JDK's HTTP client throws a ConnectException around whatever
   * happened, and Netty's exception for a connection that is not there in time is one too.
   */
  public static DownstreamOutcome ofConnect(ConnectException failure) {
    for (Throwable each = failure; each != null; each = each.getCause()) {
      // By its name: the contract does without Netty.
      if (each.getClass().getSimpleName().equals("ConnectTimeoutException")) {
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

  /** Value of the label {@code outcome}. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }
}
