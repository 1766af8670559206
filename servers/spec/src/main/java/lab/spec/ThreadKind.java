package lab.spec;

/** What kind of thread a model has for each connection. */
public enum ThreadKind {
  VIRTUAL,
  PLATFORM
}
