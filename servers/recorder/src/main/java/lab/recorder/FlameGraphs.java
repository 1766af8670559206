package lab.recorder;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.Map;
import one.convert.Arguments;
import one.convert.CallStack;
import one.convert.FlameGraph;
import one.convert.Frame;

/** Draws stacks with async-profiler's converter. */
final class FlameGraphs {
  private FlameGraphs() {}

  /** The converter's page of {@link Recorder}'s stacks, callers on top. */
  static String page(Map<String, Long> stacks) {
    Arguments arguments = new Arguments();
    // Percent of the whole: what is narrower cannot be seen.
    arguments.minwidth = 0.05;
    arguments.inverted = true;
    FlameGraph graph = new FlameGraph(arguments);
    stacks.forEach(
        (stack, weight) -> {
          CallStack frames = new CallStack();
          for (String frame : stack.split(";", -1)) {
            // Names are texts of the page's script, and the converter leaves them what ends it.
            frames.push(frame.replace('<', '‹'), type(frame));
          }
          graph.addSample(frames, weight);
        });
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (PrintStream page = new PrintStream(out, false, UTF_8)) {
      graph.dump(page);
    }
    return out.toString(UTF_8);
  }

  private static byte type(String frame) {
    return frame.startsWith("[") ? Frame.TYPE_NATIVE : Frame.TYPE_JIT_COMPILED;
  }
}
