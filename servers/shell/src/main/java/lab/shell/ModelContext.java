package lab.shell;

import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.util.function.Supplier;
import lab.observe.DownstreamMetrics;
import lab.observe.MBeans;
import lab.observe.RequestMetrics;
import lab.spec.LineFile;
import lab.spec.RouteCall;
import lab.spec.Routes;
import lab.spec.Settings;
import org.jspecify.annotations.Nullable;

/** What the contract hands to a model. The exposition writes all metrics; any thread. */
public record ModelContext(
    String model,
    Settings settings,
    Routes routes,
    RequestMetrics requests,
    DownstreamMetrics downstream,
    LineFile file,
    Knobs knobs,
    MBeans mbeans,
    PrometheusRegistry registry,
    Supplier<byte[]> exposition) {
  /** Every answer on the traffic port carries the model's name in this header. */
  public static final String MODEL_HEADER = "Lab-Model";

  public RouteCall resolve(String method, String path, @Nullable String query) {
    return routes.resolve(method, path, query);
  }
}
