package lab.conformance;

import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import jdk.jfr.consumer.RecordingFile;
import jdk.management.jfr.FlightRecorderMXBean;
import lab.recorder.Waits;

/** The exceptions that a server makes, as its JVM's flight recorder sees them. */
final class ExceptionsMade {
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
      return RecordingFile.readAllEvents(file).stream()
          .flatMap(event -> Waits.innermostOutsideTheJdk(event).stream())
          .map(frame -> frame.getMethod().getType().getName() + "." + frame.getMethod().getName())
          .filter(method -> method.startsWith("lab.") && !method.startsWith("lab.conformance."))
          .toList();
    } finally {
      recorder.closeRecording(recording);
      Files.delete(file);
    }
  }
}
