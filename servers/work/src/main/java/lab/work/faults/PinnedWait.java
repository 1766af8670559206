package lab.work.faults;

import java.lang.constant.ConstantDescs;
import java.lang.invoke.MethodHandles;

/** Waits while it is initialised, for as many milliseconds as its class data says. */
final class PinnedWait {
  static {
    try {
      Thread.sleep(
          MethodHandles.classData(
              MethodHandles.lookup(), ConstantDescs.DEFAULT_NAME, Integer.class));
    } catch (InterruptedException e) {
      // Nothing may be thrown from here; Pin looks at it.
      Thread.currentThread().interrupt();
    } catch (IllegalAccessException e) {
      throw new AssertionError(e);
    }
  }

  private PinnedWait() {}
}
