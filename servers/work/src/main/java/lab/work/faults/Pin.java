package lab.work.faults;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandles;
import java.util.Objects;
import lab.shell.Knobs;
import lab.spec.Settings;

/**
 * A fault to be found: each request waits for {@code pin_ms} below a frame of the JVM's own, that
 * of a class being initialised ({@link PinnedWait}), so that a virtual thread keeps its carrier, on
 * JDK 25 as on JDK 21. Off by default.
 */
public final class Pin {
  private final byte[] waiting = classFile();
  private volatile int keptMs = Settings.PIN_MS.fallback();

  public Pin(Knobs knobs) {
    knobs.add(Settings.PIN_MS, () -> keptMs, ms -> keptMs = ms);
  }

  public void hold() throws InterruptedException {
    int ms = keptMs;
    if (ms == 0) {
      return;
    }
    try {
      // A class is initialised once, so each wait takes a new one.
      var unused = MethodHandles.lookup().defineHiddenClassWithClassData(waiting, ms, true);
    } catch (IllegalAccessException e) {
      throw new AssertionError(e);
    }
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
  }

  private static byte[] classFile() {
    String name = PinnedWait.class.getSimpleName() + ".class";
    try (InputStream file = Objects.requireNonNull(Pin.class.getResourceAsStream(name))) {
      return file.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
