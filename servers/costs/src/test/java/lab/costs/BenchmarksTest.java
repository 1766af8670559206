package lab.costs;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

class BenchmarksTest {
  @Test
  void everyBenchmarkRunsAndTakesTime() throws Exception {
    var options =
        new OptionsBuilder()
            .forks(0)
            .warmupIterations(0)
            .measurementIterations(1)
            .measurementTime(TimeValue.milliseconds(1))
            .shouldFailOnError(true)
            .verbosity(VerboseMode.SILENT)
            .build();
    var results = new Runner(options).run();
    assertThat(results)
        .hasSize(10)
        .allSatisfy(one -> assertThat(one.getPrimaryResult().getScore()).isPositive());
    assertThat(
            results.stream().map(one -> one.getParams().getBenchmark()).collect(Collectors.toSet()))
        .hasSize(8);
  }
}
