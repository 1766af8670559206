package lab.reactor;

import java.io.IOException;
import java.nio.channels.SelectionKey;

/** What is attached to a selection key. Called on the reactor's thread. */
public interface Ready {
  /** The channel can do one or more of what was waited for; must not block. */
  void ready(SelectionKey key) throws IOException;

  /** {@link #ready} has failed: the channel is to be given up. */
  void lost(IOException reason);
}
