package lab.conformance;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import jdk.management.jfr.FlightRecorderMXBean;
import lab.recorder.Waits;

/** The exceptions that a server makes, as its JVM's flight recorder sees them. */
final class ExceptionsMade {
  private static final String LAB = "lab.";
  private static final String TESTS = "lab.conformance.";

  private ExceptionsMade() {}

  /**
   * Those that the lab's own code made while this ran, and not a framework's: its method is the
   * first below the JDK's. Each as that method's name.
   */
  static List<String> byTheLab(RunningServer server, Callable<?> work) throws Exception {
    FlightRecorderMXBean recorder =
        ManagementFactory.newPlatformMXBeanProxy(
            server.mbeans(), FlightRecorderMXBean.MXBEAN_NAME, FlightRecorderMXBean.class);
    long recording = recorder.newRecording();
    Path file = Files.createTempFile("exceptions", ".jfr");
    try {
      recorder.setRecordingSettings(
          recording,
          Map.of(
              "jdk.JavaExceptionThrow#enabled", "true",
              "jdk.JavaExceptionThrow#stackTrace", "true"));
      recorder.startRecording(recording);
      var _ = work.call();
      recorder.stopRecording(recording);
      recorder.copyTo(recording, file.toString());
      return byTheLab(file);
    } finally {
      recorder.closeRecording(recording);
      Files.delete(file);
    }
  }

  private static List<String> byTheLab(Path file) throws IOException {
    List<String> made = new ArrayList<>();
    for (RecordedEvent event : RecordingFile.readAllEvents(file)) {
      Waits.innermostOutsideTheJdk(event)
          .map(frame -> frame.getMethod().getType().getName() + "." + frame.getMethod().getName())
          .filter(method -> method.startsWith(LAB) && !method.startsWith(TESTS))
          .ifPresent(made::add);
    }
    return made;
  }
}
