package lab.helidon;

import io.helidon.webclient.api.ConnectedSocketChannelInfo;
import io.helidon.webclient.api.ConnectedSocketInfo;
import io.helidon.webclient.api.ConnectionListener;
import java.util.function.Supplier;

/**
 * Tells a call over a new connection from one over a kept one, which Helidon's client does not say:
 * it connects on the caller's own thread.
 */
final class ConnectMarks implements ConnectionListener {
  /** Whether a call has connected. The caller's thread only. */
  static final class Mark {
    private boolean made;

    boolean isMade() {
      return made;
    }
  }

  private static final ScopedValue<Mark> CALL = ScopedValue.newInstance();

  /** Does this call with the mark in scope. */
  <T> T calling(Mark mark, Supplier<T> call) {
    return ScopedValue.where(CALL, mark).call(call::get);
  }

  @Override
  public void socketConnected(ConnectedSocketInfo socket) {
    if (CALL.isBound()) {
      CALL.get().made = true;
    }
  }

  @Override
  public void socketChannelConnected(ConnectedSocketChannelInfo socket) {
    // Only sockets of Unix domains.
  }
}
