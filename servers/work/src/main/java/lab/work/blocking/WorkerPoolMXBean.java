package lab.work.blocking;

/** {@code lab:type=WorkerPool}: the threads that requests wait for, in models that have them. */
public interface WorkerPoolMXBean {
  /** Worker threads allowed. */
  int getSize();

  /** Workers with a request at this moment. */
  int getActive();

  /** Requests waiting for a worker at this moment. */
  int getQueueDepth();

  /** Requests that may wait; 0 = any number. */
  int getQueueBound();
}
