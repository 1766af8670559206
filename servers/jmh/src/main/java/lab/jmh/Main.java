package lab.jmh;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.openjdk.jmh.results.format.ResultFormatType;
import org.openjdk.jmh.runner.NoBenchmarksException;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.ChainedOptionsBuilder;
import org.openjdk.jmh.runner.options.CommandLineOptionException;
import org.openjdk.jmh.runner.options.CommandLineOptions;
import org.openjdk.jmh.runner.options.OptionsBuilder;

/**
 * Runs the benchmarks with JMH's own options, and keeps JMH's JSON beside the host's record: {@code
 * Main FOLDER HOST_JSON [JMH's options]}.
 *
 * <p>Time first: {@code time.json}. Then the memory of {@link SleepingTasks} in further JVMs, as
 * what one needs changes the other: {@code memory.json}. For time the heap's pages are touched
 * before the clock starts (AlwaysPreTouch). For memory they are not, as all of them would be
 * resident then.
 */
public final class Main {
  private final CommandLineOptions options;

  private Main(CommandLineOptions options) {
    this.options = options;
  }

  /** Exits with 1 if JMH refuses its options or a benchmark fails. */
  @SuppressWarnings("SystemOut") // JMH prints there, too.
  public static void main(String[] args) throws IOException {
    Path folder = Path.of(args[0]);
    try {
      String[] given = List.of(args).subList(2, args.length).toArray(String[]::new);
      Main main = new Main(new CommandLineOptions(given));
      Files.createDirectory(folder);
      Files.copy(Path.of(args[1]), folder.resolve("host.json"));
      main.measure(folder);
    } catch (CommandLineOptionException | RunnerException e) {
      System.err.println("jmh: " + e.getMessage());
      Runtime.getRuntime().exit(1);
    }
  }

  private void measure(Path folder) throws RunnerException {
    train("fixedPoolAot", SleepingTasks.POOL_CACHE);
    train("virtualThreadsAot", SleepingTasks.VIRTUAL_CACHE);
    run(json(chosen().jvmArgsPrepend("-XX:+AlwaysPreTouch"), folder.resolve("time.json")));
    runIfAny(
        json(
            only("SleepingTasks\\.").addProfiler(MemoryProfiler.class),
            folder.resolve("memory.json")));
  }

  /**
   * A run whose JVM writes the AOT cache as it ends. It is no measurement and has no result file,
   * which JMH would make in the working directory, where nothing can be written.
   */
  private void train(String benchmark, String cache) throws RunnerException {
    runIfAny(
        only("SleepingTasks\\." + benchmark + "$")
            .forks(1)
            .warmupIterations(0)
            .jvmArgsAppend("-XX:AOTCacheOutput=" + cache));
  }

  private ChainedOptionsBuilder chosen() {
    return new OptionsBuilder().parent(options).shouldFailOnError(true);
  }

  private static ChainedOptionsBuilder json(ChainedOptionsBuilder builder, Path file) {
    return builder.resultFormat(ResultFormatType.JSON).result(file.toString());
  }

  /** Those of the chosen benchmarks whose name begins so. */
  private ChainedOptionsBuilder only(String prefix) {
    return chosen().exclude("^lab\\.jmh\\.(?!" + prefix + ")");
  }

  private static void run(ChainedOptionsBuilder builder) throws RunnerException {
    var _ = new Runner(builder.build()).run();
  }

  private static void runIfAny(ChainedOptionsBuilder builder) throws RunnerException {
    try {
      run(builder);
    } catch (NoBenchmarksException e) {
      System.getLogger(Main.class.getName()).log(System.Logger.Level.DEBUG, "none is chosen", e);
    }
  }
}
