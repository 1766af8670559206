package lab.springwebflux;

import java.time.Duration;
import lab.shell.ModelContext;
import lab.spec.BlockTheLoop;
import lab.spec.LineFile;
import lab.spec.LineFile.Reading;
import org.springframework.stereotype.Component;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** The two kinds of work that would block a thread, and must not block a loop's. */
@Component
final class Work {
  private final LineFile file;
  private final BlockTheLoop blockTheLoop;

  Work(ModelContext context) {
    file = context.file();
    blockTheLoop = context.settings().blockTheLoop();
  }

  /** A timer of Reactor's, unless the mistake is wanted that holds up the loop. */
  Mono<Integer> pause(int waitMs) {
    if (blockTheLoop.blocks()) {
      return Mono.fromCallable(
          () -> {
            blockTheLoop.hold(waitMs);
            return waitMs;
          });
    }
    return Mono.delay(Duration.ofMillis(waitMs)).thenReturn(waitMs);
  }

  /** Reads on the threads that Reactor has for what blocks. */
  Mono<Reading> read(int lines) {
    return Mono.fromCallable(() -> file.read(lines)).subscribeOn(Schedulers.boundedElastic());
  }
}
