package lab.recorder;

import java.util.Optional;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedStackTrace;

/** Whose code an event of Flight Recorder is of. */
public final class Frames {
  private Frames() {}

  /** The innermost frame that is not the JDK's; empty where all are, and without a stack. */
  public static Optional<RecordedFrame> innermostOutsideTheJdk(RecordedEvent event) {
    RecordedStackTrace trace = event.getStackTrace();
    return trace == null
        ? Optional.empty()
        : trace.getFrames().stream()
            .filter(frame -> !Waits.isOfTheJdk(Waits.className(frame)))
            .findFirst();
  }
}
