package lab.shell;

import io.prometheus.metrics.core.metrics.Gauge;
import io.prometheus.metrics.core.metrics.Info;
import io.prometheus.metrics.expositionformats.PrometheusTextFormatWriter;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.function.Supplier;

/** Writes a registry in Prometheus text format 0.0.4. Safe for any number of threads. */
final class Exposition implements Supplier<byte[]> {
  private final PrometheusRegistry registry;
  private final PrometheusTextFormatWriter writer = PrometheusTextFormatWriter.create();

  Exposition(PrometheusRegistry registry, Identity identity) {
    this.registry = registry;
    Info.builder()
        .name("lab_server_info")
        .help("Which server this is.")
        .labelNames("model", "jdk", "version")
        .register(registry)
        .addLabelValues(identity.model(), identity.jdk(), identity.version());
    Gauge.builder()
        .name("lab_server_start_time_seconds")
        .help("When the JVM started, seconds since 1970 UTC.")
        .register(registry)
        .set(identity.startTimeMs() / 1e3);
  }

  @Override
  public byte[] get() {
    ByteArrayOutputStream out = new ByteArrayOutputStream(32_768);
    try {
      writer.write(out, registry.scrape());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.toByteArray();
  }
}
