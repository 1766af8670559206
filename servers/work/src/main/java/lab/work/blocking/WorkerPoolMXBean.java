package lab.work.blocking;

/** {@code lab:type=WorkerPool}: the threads that requests wait for, in models that have them. */
public interface WorkerPoolMXBean {
  int getSize();

  int getActive();

  int getQueueDepth();

  /** Requests that may wait; 0 = any number. */
  int getQueueBound();
}
