package lab.spec;

/** How Netty's loops read and write. */
public enum NettyTransport {
  /** By the JDK's selectors, as every other model. */
  NIO,
  /** By Netty's own library for Linux. */
  EPOLL
}
