package lab.observe;

import io.prometheus.metrics.core.metrics.Counter;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import lab.spec.Route;

/** Counts what became of the branches of routes that work in parallel: losers are seen to stop. */
public final class BranchMetrics {
  private final Counter total;

  public BranchMetrics(PrometheusRegistry registry) {
    total =
        Counter.builder()
            .name("lab_branches_total")
            .help("Branches of parallel routes ended: ok, failed, or cancelled before their end.")
            .labelNames("route", "outcome")
            .register(registry);
  }

  public void ok(Route route) {
    total.labelValues(route.path(), "ok").inc();
  }

  public void failed(Route route) {
    total.labelValues(route.path(), "failed").inc();
  }

  public void cancelled(Route route) {
    total.labelValues(route.path(), "cancelled").inc();
  }
}
