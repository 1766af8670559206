package lab.observe;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/** The lab's own MXBeans, {@code lab:type=…}; unregistered when the server stops. */
public final class MBeans implements AutoCloseable {
  private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
  private final List<ObjectName> registered = new ArrayList<>();

  /** Registers an MXBean as {@code lab:type=<type>}. Its getters must not block. */
  public synchronized void register(String type, Object bean) {
    try {
      ObjectName name = new ObjectName("lab", "type", type);
      server.registerMBean(bean, name);
      registered.add(name);
    } catch (JMException e) {
      throw new IllegalStateException("cannot register the MXBean " + type, e);
    }
  }

  @Override
  public synchronized void close() {
    for (ObjectName name : registered) {
      try {
        server.unregisterMBean(name);
      } catch (JMException e) {
        throw new IllegalStateException("cannot unregister " + name, e);
      }
    }
    registered.clear();
  }
}
