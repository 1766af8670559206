package lab.recorder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import lab.recorder.ParkedThreads.Waiting;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How a thread dump of JDK 25 is read; that it still looks so, LockWatchTest asks the JVM. */
class ParkedThreadsTest {
  @Test
  void virtualThreadsThatWaitForALockAreCountedAtTheirOwnCode() throws Exception {
    assertThat(
            read(
                """
                26586
                2026-11-23T08:42:19.642194423Z
                25.0.3+9-LTS

                #12 "pool-1" BLOCKED 2026-11-23T08:42:19.642403139Z
                    at lab.A.platform(A.java:1)
                    - waiting to lock <java.lang.Object@7ed7259e>

                #31 "vt-request-1" virtual WAITING 2026-11-23T08:42:19.642403139Z
                    at java.base/java.lang.VirtualThread.park(VirtualThread.java:738)
                    - parking to wait for <java.util.concurrent.locks.ReentrantLock$FairSync@1b2c>
                    at java.base/java.util.concurrent.locks.LockSupport.park(LockSupport.java:221)
                    at java.base/java.util.concurrent.locks.ReentrantLock.lock(ReentrantLock.java:9)
                    at lab.A$Inner.take(A.java:27)
                    - locked <java.lang.Object@1>
                    at lab.B.run(B.java:3)

                #32 "" virtual BLOCKED 2026-11-23T08:42:19.722943694Z
                    at lab.C/0x000000008a04d800.enter(Unknown Source)
                    - waiting to lock <java.lang.Object@7ed7259e>

                #33 "a \" virtual name" virtual TIMED_WAITING 2026-11-23T08:42:19.722943694Z
                    at java.base/java.lang.VirtualThread.parkNanos(VirtualThread.java:784)
                    at lab.D.sleep(D.java:5)

                #34 "" virtual WAITING 2026-11-23T08:42:19.722943694Z
                    at java.base/java.lang.VirtualThread.park(VirtualThread.java:738)
                    - parking to wait for <java.util.concurrent.Semaphore$NonfairSync@5>
                    at lab.E.permit(E.java:6)

                #35 "" virtual BLOCKED 2026-11-23T08:42:19.722943694Z
                    at java.base/java.io.PrintStream.println(PrintStream.java:1168)

                """))
        .containsExactly(
            new Waiting("lock", "lab.A$Inner.take:27"),
            new Waiting("monitor", "lab.C.enter"),
            new Waiting("monitor", "other"));
  }

  @Test
  void aLookThatFailsIsCountedAndTriedAgain(@TempDir Path there) throws Exception {
    CountDownLatch twice = new CountDownLatch(2);
    try (ParkedThreads parked =
        new ParkedThreads(
            (kind, site, nanos) -> {}, twice::countDown, () -> {}, there.resolve("gone"))) {
      assertThat(twice.await(1, TimeUnit.MINUTES)).isTrue();
      assertThat(parked).isNotNull();
    }
  }

  @Test
  void whenNobodyLooksAnyMoreThatIsTold(@TempDir Path there) throws Exception {
    CountDownLatch died = new CountDownLatch(1);
    Runnable kills =
        () -> {
          throw new AssertionError("on purpose, as for want of memory");
        };
    try (ParkedThreads parked =
        new ParkedThreads(
            (kind, site, nanos) -> {}, kills, died::countDown, there.resolve("gone"))) {
      assertThat(died.await(1, TimeUnit.MINUTES)).isTrue();
      assertThat(parked).isNotNull();
    }
  }

  @Test
  void aDumpThatIsWrittenInAnotherWayIsNoDumpInWhichNobodyWaits() {
    assertThatThrownBy(() -> read("26586\nThread 1 \"main\" RUNNABLE\n\n"))
        .isInstanceOf(IOException.class);
  }

  private static List<Waiting> read(String dump) throws Exception {
    return ParkedThreads.read(new BufferedReader(new StringReader(dump)));
  }
}
