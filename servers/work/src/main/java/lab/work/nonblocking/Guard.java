package lab.work.nonblocking;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.Callable;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import lab.spec.Answer;
import lab.spec.RouteCall;
import org.jspecify.annotations.Nullable;

/**
 * One request on its loop: what it leaves there to be done later may throw like what it does at
 * once, and then its answer is a 500. Without that nobody would answer it, and it would be in
 * flight for ever; or the loop would end. Its loop's thread only.
 */
final class Guard implements LoopServices, Consumer<Answer> {
  private static final Logger LOG = System.getLogger(Guard.class.getName());

  private final LoopServices loop;
  private final RouteCall call;
  private final Consumer<Answer> to;
  private boolean answered;

  /** Only the first answer is taken. */
  Guard(LoopServices loop, RouteCall call, Consumer<Answer> to) {
    this.loop = loop;
    this.call = call;
    this.to = to;
  }

  @Override
  public void accept(Answer answer) {
    if (!answered) {
      answered = true;
      to.accept(answer);
    }
  }

  /** Does a part of the work. */
  void run(Runnable part) {
    try {
      part.run();
    } catch (RuntimeException | Error e) {
      LOG.log(Level.ERROR, "a bug: " + call.route().path() + " failed", e);
      accept(Answer.INTERNAL_ERROR);
    }
  }

  @Override
  public Pending after(long millis, Runnable then) {
    return loop.after(millis, () -> run(then));
  }

  @Override
  public <T> void handOver(Callable<T> work, BiConsumer<@Nullable T, @Nullable Throwable> then) {
    loop.handOver(
        work,
        (result, failure) -> {
          if (failure != null) {
            LOG.log(
                Level.ERROR, call.route().path() + ": work that was handed over failed", failure);
          }
          run(() -> then.accept(result, failure));
        });
  }

  @Override
  public void callDownstream(DownstreamCallback callback) {
    loop.callDownstream((outcome, body) -> run(() -> callback.ended(outcome, body)));
  }
}
