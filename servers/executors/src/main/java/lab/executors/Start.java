package lab.executors;

import java.nio.file.Path;
import java.util.List;

/** How the JVM of a measurement is started, and what it did before. */
enum Start implements Word {
  /** Nothing ran before: classes are parsed and linked, code is interpreted. */
  COLD("cold"),
  /** Writes the cache that {@link #AOT} starts with, as it ends: no measurement of its own. */
  TRAIN("train"),
  /**
   * Nothing ran before in this JVM, but it starts with the classes, loaded and linked, and the
   * method profiles of a training run (JEP 483, 514 and 515).
   */
  AOT("aot"),
  /** Identical rounds ran before, on the same executor. */
  WARM("warm");

  private final String label;

  Start(String label) {
    this.label = label;
  }

  @Override
  public String label() {
    return label;
  }

  /** Returns its JVM flags. {@code AOTMode=on}: a cache that does not fit ends the JVM. */
  List<String> flags(Path cache) {
    return switch (this) {
      case COLD, WARM -> List.of();
      case TRAIN -> List.of("-XX:AOTCacheOutput=" + cache);
      case AOT -> List.of("-XX:AOTCache=" + cache, "-XX:AOTMode=on");
    };
  }
}
