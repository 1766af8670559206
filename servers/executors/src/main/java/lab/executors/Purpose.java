package lab.executors;

import java.util.List;

/** What a launch is for. Each has its own, as what one needs changes the other. */
enum Purpose implements Word {
  /** The heap's pages are touched before anything is measured, so that none is on the clock. */
  TIME("time", List.of("-XX:+AlwaysPreTouch")),
  /** A page becomes resident when it is first touched. */
  MEMORY("memory", List.of());

  private final String label;

  @SuppressWarnings("ImmutableEnumChecker") // List.of.
  private final List<String> flags;

  Purpose(String label, List<String> flags) {
    this.label = label;
    this.flags = flags;
  }

  @Override
  public String label() {
    return label;
  }

  /** Returns its JVM flags. */
  List<String> flags() {
    return flags;
  }
}
