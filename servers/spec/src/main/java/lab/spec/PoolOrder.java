package lab.spec;

/** Which of a pool's idle workers gets the next request. */
public enum PoolOrder {
  /** The one that has waited longest, as in the JDK's pools: with little work all take turns. */
  FIFO,
  /** The one that began to wait last, whose stack and caches are the warmest. */
  LIFO
}
