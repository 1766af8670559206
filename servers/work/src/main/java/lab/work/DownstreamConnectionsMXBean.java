package lab.work;

/** {@code lab:type=DownstreamConnections}: the cap on downstream calls at a time. */
public interface DownstreamConnectionsMXBean {
  /** Calls that hold a connection. */
  int getLeased();

  /** Calls that wait for one. */
  int getPending();

  int getCap();
}
