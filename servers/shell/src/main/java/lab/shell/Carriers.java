package lab.shell;

import java.lang.management.ManagementFactory;
import javax.management.JMX;
import javax.management.MBeanServer;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;
import lab.spec.IntOption;

/** Carrier threads: in every model, as every JVM has them. */
final class Carriers {
  /** 256 is the scheduler's own upper limit unless a JVM flag raises it. */
  private static final IntOption PARALLELISM =
      new IntOption("virtual_thread_parallelism", 1, 1, 256);

  /** What the JDK's scheduler of virtual threads shows from JDK 24 on, as far as the lab needs. */
  public interface CarriersMXBean {
    int getParallelism();

    void setParallelism(int carriers);
  }

  private Carriers() {}

  /** Shows how many there may be: as a knob where the JDK lets it be turned, from 24 on. */
  static void show(Knobs knobs) {
    MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    ObjectName name = scheduler();
    if (!server.isRegistered(name)) {
      knobs.hasFixed(PARALLELISM, Runtime.getRuntime().availableProcessors());
      return;
    }
    CarriersMXBean scheduler = JMX.newMXBeanProxy(server, name, CarriersMXBean.class);
    knobs.add(PARALLELISM, scheduler::getParallelism, scheduler::setParallelism);
  }

  private static ObjectName scheduler() {
    try {
      return new ObjectName("jdk.management:type=VirtualThreadScheduler");
    } catch (MalformedObjectNameException e) {
      throw new AssertionError(e);
    }
  }
}
