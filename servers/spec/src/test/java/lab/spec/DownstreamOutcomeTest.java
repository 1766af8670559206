package lab.spec;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.BindException;
import java.net.ConnectException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.UnresolvedAddressException;
import java.util.List;
import org.junit.jupiter.api.Test;

class DownstreamOutcomeTest {
  @Test
  void anAttemptToConnectFailsForWhatIsBehindIt() {
    assertThat(DownstreamOutcome.ofConnect(new ConnectException("Connection refused")))
        .isEqualTo(DownstreamOutcome.REFUSED);
    assertThat(of(new ConnectException("Connection refused"))).isEqualTo(DownstreamOutcome.REFUSED);
    // The JDK's client says so too where it was refused.
    assertThat(of(new ClosedChannelException())).isEqualTo(DownstreamOutcome.REFUSED);
    assertThat(of(new BindException("no port is left"))).isEqualTo(DownstreamOutcome.ERROR);
    assertThat(of(new UnresolvedAddressException())).isEqualTo(DownstreamOutcome.ERROR);
    // The kernel's words, and Netty's.
    for (String late :
        List.of(
            "Connection timed out",
            "finishConnect(..) failed: Connection timed out: /10.0.0.1:80",
            "connection timed out after 100 ms: /10.0.0.1:80")) {
      assertThat(DownstreamOutcome.ofConnect(new ConnectException(late)))
          .isEqualTo(DownstreamOutcome.TIMEOUT);
      assertThat(of(new ConnectException(late))).isEqualTo(DownstreamOutcome.TIMEOUT);
    }
    assertThat(DownstreamOutcome.ofConnect(new ConnectException()))
        .isEqualTo(DownstreamOutcome.REFUSED);
  }

  private static DownstreamOutcome of(Throwable cause) {
    ConnectException around = new ConnectException(cause.getMessage());
    around.initCause(cause);
    return DownstreamOutcome.ofConnect(around);
  }
}
