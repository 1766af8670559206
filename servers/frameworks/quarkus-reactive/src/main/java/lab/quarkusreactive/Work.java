package lab.quarkusreactive;

import io.smallrye.mutiny.Uni;
import io.vertx.mutiny.core.Vertx;
import jakarta.inject.Singleton;
import java.time.Duration;
import lab.shell.ModelContext;
import lab.spec.BlockTheLoop;
import lab.spec.LineFile;
import lab.spec.LineFile.Reading;

/** What takes time. Each begins when subscribed to, and ends on the event loop it began on. */
@Singleton
final class Work {
  private final Vertx vertx;
  private final LineFile file;
  private final BlockTheLoop blockTheLoop;

  Work(Vertx vertx, ModelContext context) {
    this.vertx = vertx;
    this.file = context.file();
    this.blockTheLoop = context.settings().blockTheLoop();
  }

  /** Waits; the item is for how long. On an event loop Quarkus makes the delay a timer of its. */
  Uni<Integer> wait(int millis) {
    Uni<Integer> item = Uni.createFrom().item(millis);
    if (blockTheLoop.blocks()) {
      return item.invoke(blockTheLoop::hold);
    }
    return millis == 0 ? item : item.onItem().delayIt().by(Duration.ofMillis(millis));
  }

  /** Reads the file on a worker thread. */
  Uni<Reading> file(int lines) {
    return vertx.executeBlocking(() -> file.read(lines), false);
  }
}
