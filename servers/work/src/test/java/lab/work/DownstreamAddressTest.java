package lab.work;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URI;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class DownstreamAddressTest {
  /** As where a limit on processes is met: a call that needs no look-up does not fail for it. */
  @Test
  void withoutAThreadToLookUpTheOldAddressHolds() {
    AtomicLong now = new AtomicLong();
    AtomicInteger tries = new AtomicInteger();
    DownstreamAddress address =
        new DownstreamAddress(
            URI.create("http://127.0.0.1/"),
            lookUp -> {
              if (tries.incrementAndGet() < 3) {
                throw new InternalError("planted by a test");
              }
              lookUp.run();
            },
            now::get);
    for (int old = 0; old < 4; old++) {
      now.addAndGet(TimeUnit.SECONDS.toNanos(6));
      assertThat(address.current().getPort()).isEqualTo(80);
      // Not for every call.
      assertThat(address.current().isUnresolved()).isFalse();
    }
    assertThat(tries).hasValue(4);
  }
}
