package lab.jmh;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.options.ChainedOptionsBuilder;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

class BenchmarksTest {
  @Test
  void everyBenchmarkRunsAndTakesTime() throws Exception {
    var results = new Runner(brief().build()).run();
    assertThat(results)
        .hasSize(28)
        .allSatisfy(result -> assertThat(result.getPrimaryResult().getScore()).isPositive());
    assertThat(
            results.stream()
                .map(result -> result.getParams().getBenchmark())
                .collect(Collectors.toSet()))
        .hasSize(22);
  }

  @Test
  void aPoolSleepsInRoundsAndVirtualThreadsAllAtOnce() throws Exception {
    // 201 tasks of 20 ms on 200 threads: two rounds.
    var pool = new Runner(sleeping("fixedPoolCold").build()).runSingle();
    assertThat(pool.getPrimaryResult().getScore()).isGreaterThanOrEqualTo(40);
  }

  @Test
  void memoryIsReadWhileTasksSleep() throws Exception {
    for (String benchmark : new String[] {"fixedPoolCold", "virtualThreadsCold"}) {
      RunResult result =
          new Runner(sleeping(benchmark).addProfiler(MemoryProfiler.class).build()).runSingle();
      assertThat(result.getSecondaryResults()).containsKeys("heap.live", "asleep", "resident.peak");
      assertThat(result.getSecondaryResults().values())
          .filteredOn(figure -> figure.getLabel().equals("asleep"))
          .allSatisfy(figure -> assertThat(figure.getScore()).isBetween(1.0, 201.0));
    }
  }

  private static ChainedOptionsBuilder brief() {
    return new OptionsBuilder()
        .forks(0)
        .warmupIterations(0)
        .measurementIterations(1)
        .measurementTime(TimeValue.milliseconds(1))
        .param("tasks", "201")
        .param("sleepMs", "20")
        .shouldFailOnError(true)
        .verbosity(VerboseMode.SILENT);
  }

  private static ChainedOptionsBuilder sleeping(String benchmark) {
    return brief().include("SleepingTasks." + benchmark + "$");
  }
}
