package lab.shell;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.RuntimeMXBean;
import java.util.LinkedHashMap;
import java.util.Map;
import lab.spec.Routes;

/** Who answers here: the driver notices another server, or one restarted within a trial. */
record Identity(
    String model, String version, String jdk, long startTimeMs, Map<String, Object> asMap) {
  static Identity ofThisJvm(String model, Routes routes) {
    RuntimeMXBean runtime = ManagementFactory.getRuntimeMXBean();
    String packaged = Identity.class.getPackage().getImplementationVersion();
    String version = packaged == null ? "unpackaged" : packaged;
    String jdk = Runtime.version().toString();
    Map<String, Object> map = new LinkedHashMap<>();
    map.put("model", model);
    map.put("version", version);
    map.put("jdk", jdk);
    map.put("pid", runtime.getPid());
    map.put("start_time_ms", runtime.getStartTime());
    map.put("cpus", Runtime.getRuntime().availableProcessors());
    map.put("max_heap_bytes", Runtime.getRuntime().maxMemory());
    map.put(
        "gc",
        ManagementFactory.getGarbageCollectorMXBeans().stream()
            .map(GarbageCollectorMXBean::getName)
            .toList());
    // As given on the command line.
    map.put("jvm_flags", runtime.getInputArguments());
    map.put("routes", routes.paths());
    return new Identity(model, version, jdk, runtime.getStartTime(), map);
  }
}
