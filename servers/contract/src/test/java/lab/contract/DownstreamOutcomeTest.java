package lab.contract;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.BindException;
import java.net.ConnectException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.UnresolvedAddressException;
import org.junit.jupiter.api.Test;

class DownstreamOutcomeTest {
  /** As Netty's. */
  private static final class ConnectTimeoutException extends ConnectException {}

  @Test
  void anAttemptToConnectFailsForWhatIsBehindIt() {
    assertThat(DownstreamOutcome.ofConnect(new ConnectException("Connection refused")))
        .isEqualTo(DownstreamOutcome.REFUSED);
    assertThat(of(new ConnectException("Connection refused"))).isEqualTo(DownstreamOutcome.REFUSED);
    // The JDK's client says so too where it was refused.
    assertThat(of(new ClosedChannelException())).isEqualTo(DownstreamOutcome.REFUSED);
    assertThat(of(new BindException("no port is left"))).isEqualTo(DownstreamOutcome.ERROR);
    assertThat(of(new UnresolvedAddressException())).isEqualTo(DownstreamOutcome.ERROR);
    assertThat(DownstreamOutcome.ofConnect(new ConnectTimeoutException()))
        .isEqualTo(DownstreamOutcome.TIMEOUT);
  }

  private static DownstreamOutcome of(Throwable cause) {
    ConnectException around = new ConnectException(cause.getMessage());
    around.initCause(cause);
    return DownstreamOutcome.ofConnect(around);
  }
}
