package lab.work.faults;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandles;
import java.util.Objects;
import lab.shell.Knobs;
import lab.spec.Settings;

/**
 * A fault to be found: each request waits for {@code pin_ms} below a frame of the JVM's own, so
 * that a virtual thread keeps its carrier meanwhile, on JDK 25 as on JDK 21. Off by default. For a
 * platform thread it is only a wait.
 *
 * <p>The frame is that of a class being initialised, see {@link PinnedWait}. Code has the same
 * effect that C calls back, and would need a library in C here.
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
