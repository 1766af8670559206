package lab.contract;

/** What the JDK's scheduler of virtual threads shows from JDK 24 on, as far as the lab turns it. */
public interface CarriersMXBean {
  /** Most threads that carry virtual ones. */
  int getParallelism();

  /** Changes that while virtual threads run. */
  void setParallelism(int carriers);
}
