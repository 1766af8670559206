package lab.jmh;

import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * What it costs that a connection's state machine takes a step, as an event loop has it do instead
 * of switching threads: the state is looked at, the event is taken, the next state is kept.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
@State(Scope.Benchmark)
public class Transitions {
  private static final int CONNECTIONS = 10_000;

  private final Connection[] ready = new Connection[CONNECTIONS];

  /** Connections in different states, and in an order that no CPU can foresee. */
  @Setup
  public void fill() {
    Random random = new Random(1);
    for (int i = 0; i < CONNECTIONS; i++) {
      ready[i] = new Connection(Step.values()[random.nextInt(Step.values().length)]);
    }
    for (int i = CONNECTIONS - 1; i > 0; i--) {
      int other = random.nextInt(i + 1);
      Connection moved = ready[i];
      ready[i] = ready[other];
      ready[other] = moved;
    }
  }

  /** Every connection takes the event that its state waits for. */
  @Benchmark
  @OperationsPerInvocation(CONNECTIONS)
  public int oneStep() {
    int sum = 0;
    for (Connection connection : ready) {
      sum += connection.take(64);
    }
    return sum;
  }

  private enum Step {
    READING,
    CALLING,
    WAITING,
    WRITING
  }

  private static final class Connection {
    private Step step;
    private int read;
    private int calls;
    private int answered;

    Connection(Step step) {
      this.step = step;
    }

    int take(int bytes) {
      switch (step) {
        case READING -> {
          read += bytes;
          step = Step.CALLING;
        }
        case CALLING -> {
          calls++;
          step = Step.WAITING;
        }
        case WAITING -> {
          read -= bytes;
          step = Step.WRITING;
        }
        case WRITING -> {
          answered += bytes;
          step = Step.READING;
        }
      }
      return read + calls + answered;
    }
  }
}
