package lab.springwebflux;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import lab.conformance.ContractTest;
import lab.conformance.RawClient;
import org.junit.jupiter.api.Test;

class SpringWebfluxTest extends ContractTest {
  /** Timers fire on Reactor's threads for work that does not block. */
  SpringWebfluxTest() {
    super(SpringWebflux.MODEL, "parallel-");
  }

  /** Not its transport: Reactor Netty brings a native one for one architecture only. */
  @Override
  protected List<String> asShipped() {
    return List.of("\"downstream_keep_idle_s\":null");
  }

  /** A call and its client may have two loops, and busy CPUs run them in any order. */
  @Test
  void onBusyCpusWhatIsReadIsCountedAsAnswered() throws Exception {
    double aborted = requests("aborted", "/downstream");
    Callable<Boolean> caller =
        () -> {
          try (RawClient client = client()) {
            for (int i = 0; i < 300; i++) {
              assertThat(client.get("/downstream").status()).isEqualTo(200);
            }
            return true;
          }
        };
    AtomicBoolean isBusy = new AtomicBoolean(true);
    try (ExecutorService threads = Executors.newCachedThreadPool()) {
      for (int i = 0; i < 4; i++) {
        threads.execute(
            () -> {
              while (isBusy.get()) {
                Thread.onSpinWait();
              }
            });
      }
      try {
        for (Future<Boolean> each : threads.invokeAll(Collections.nCopies(3, caller))) {
          assertThat(each.get()).isTrue();
        }
      } finally {
        isBusy.set(false);
      }
    }
    awaitInFlight("/downstream", 0);
    assertThat(requests("aborted", "/downstream")).isEqualTo(aborted);
  }
}
