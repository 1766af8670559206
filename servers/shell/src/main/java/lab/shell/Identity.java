package lab.shell;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.RuntimeMXBean;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import lab.spec.Routes;

/**
 * Who answers here: read by the driver before and after a trial, so that a comparison of the wrong
 * server, or of one that was restarted meanwhile, is noticed.
 *
 * @param startTimeMs when the JVM started, ms since 1970 UTC
 * @param cpus processors the JVM believes it has
 * @param gc names of the garbage collectors
 * @param jvmFlags as given on the command line
 * @param routes paths of the traffic port
 */
record Identity(
    String model,
    String version,
    String jdk,
    long pid,
    long startTimeMs,
    int cpus,
    long maxHeapBytes,
    List<String> gc,
    List<String> jvmFlags,
    List<String> routes) {

  static Identity ofThisJvm(String model, Routes routes) {
    RuntimeMXBean runtime = ManagementFactory.getRuntimeMXBean();
    String version = Identity.class.getPackage().getImplementationVersion();
    return new Identity(
        model,
        version == null ? "unpackaged" : version,
        Runtime.version().toString(),
        runtime.getPid(),
        runtime.getStartTime(),
        Runtime.getRuntime().availableProcessors(),
        Runtime.getRuntime().maxMemory(),
        ManagementFactory.getGarbageCollectorMXBeans().stream()
            .map(GarbageCollectorMXBean::getName)
            .toList(),
        List.copyOf(runtime.getInputArguments()),
        routes.paths());
  }

  Map<String, Object> asMap() {
    Map<String, Object> map = new LinkedHashMap<>();
    map.put("model", model);
    map.put("version", version);
    map.put("jdk", jdk);
    map.put("pid", pid);
    map.put("start_time_ms", startTimeMs);
    map.put("cpus", cpus);
    map.put("max_heap_bytes", maxHeapBytes);
    map.put("gc", gc);
    map.put("jvm_flags", jvmFlags);
    map.put("routes", routes);
    return map;
  }
}
