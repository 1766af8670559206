package lab.eventloop;

import org.jspecify.annotations.Nullable;

/**
 * The connections that wait for their client, longest first. Being linked through the connections
 * themselves it costs no memory of its own, and a request moves its connection in constant time, so
 * that no timer has to be set and cancelled for it.
 */
final class QuietList {
  private @Nullable Connection first;
  private @Nullable Connection last;

  void add(Connection connection) {
    connection.earlier = last;
    connection.later = null;
    if (last == null) {
      first = connection;
    } else {
      last.later = connection;
    }
    last = connection;
    connection.isListed = true;
  }

  /** Takes a connection out, if it is in. */
  void remove(Connection connection) {
    if (!connection.isListed) {
      return;
    }
    connection.isListed = false;
    Connection earlier = connection.earlier;
    Connection later = connection.later;
    if (earlier == null) {
      first = later;
    } else {
      earlier.later = later;
    }
    if (later == null) {
      last = earlier;
    } else {
      later.earlier = earlier;
    }
    connection.earlier = null;
    connection.later = null;
  }

  /** The one that has waited longest. */
  @Nullable Connection first() {
    return first;
  }
}
