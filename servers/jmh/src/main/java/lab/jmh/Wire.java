package lab.jmh;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.util.concurrent.TimeUnit;
import lab.wire.AnswerWriter;
import lab.wire.MalformedException;
import lab.wire.Request;
import lab.wire.RequestHead;
import lab.wire.RequestReader;
import org.jspecify.annotations.Nullable;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** What HTTP/1.1 costs without I/O: a request is read, an answer is written. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class Wire {
  /** A connection's input. */
  @State(Scope.Thread)
  public static class Input {
    /** As a browser's or a gateway's head, and as a load engine's. */
    @Param({"200", "1500"})
    public int headBytes;

    private final RequestReader reader = new RequestReader(new RequestHead());
    private byte[] bytes = new byte[0];

    /** Fields of 100 bytes, as many as there have to be. */
    @Setup
    public void fill() {
      StringBuilder head = new StringBuilder("GET /downstream HTTP/1.1\r\nHost: lab\r\n");
      while (head.length() < headBytes - 110) {
        head.append("A-Field: ").append("x".repeat(89)).append("\r\n");
      }
      head.append("Filler: ").append("x".repeat(headBytes - head.length() - 12)).append("\r\n\r\n");
      bytes = head.toString().getBytes(US_ASCII);
    }
  }

  /** What the answer is about. */
  @State(Scope.Thread)
  public static class Output {
    @Param({"45", "16384"})
    public int bodyBytes;

    private final AnswerWriter writer = new AnswerWriter("Lab-Model: jmh");
    private final Request request = new Request("GET", "/downstream", null, true, true);
    private byte[] body = new byte[0];

    /** A body of that size. */
    @Setup
    public void fill() {
      body = new byte[bodyBytes];
    }
  }

  /** A whole request that came in one piece. */
  @Benchmark
  public @Nullable Request requestIsRead(Input input) throws MalformedException {
    input.reader.add(input.bytes, input.bytes.length);
    Request request = input.reader.next();
    input.reader.keep();
    return request;
  }

  /** Head and body. */
  @Benchmark
  public byte[] answerIsWritten(Output output) {
    return output.writer.answer(output.request, 200, "application/json", output.body, true);
  }
}
