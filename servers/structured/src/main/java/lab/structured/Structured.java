package lab.structured;

import lab.shell.ModelContext;
import lab.work.blocking.Demonstrations;

/** By this name a lane that has the jar finds its demonstrations. */
public final class Structured implements Demonstrations.Source {
  @Override
  public Demonstrations of(ModelContext context) {
    return Aggregates.of(context);
  }
}
