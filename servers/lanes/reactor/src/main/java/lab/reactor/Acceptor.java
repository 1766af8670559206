package lab.reactor;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.channels.SelectionKey;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.List;

/** Takes connections off the accept queue and deals them out to the reactors in turn. */
final class Acceptor extends Timers.Timer implements Ready {
  private static final Logger LOG = System.getLogger(Acceptor.class.getName());

  /** So that a flood of connections does not hold up those that are there. */
  private static final int MOST_AT_ONCE = 256;

  private static final long PAUSE_NANOS = 100_000_000;

  private final ServerSocketChannel listener;
  private final SelectionKey key;
  private final Reactor own;
  private final List<? extends Reactor> reactors;
  private int next;

  /**
   * @param own the reactor that the key belongs to
   */
  Acceptor(
      ServerSocketChannel listener,
      SelectionKey key,
      Reactor own,
      List<? extends Reactor> reactors) {
    this.listener = listener;
    this.key = key;
    this.own = own;
    this.reactors = reactors;
  }

  @Override
  public void ready(SelectionKey selected) throws IOException {
    for (int i = 0; i < MOST_AT_ONCE; i++) {
      SocketChannel channel = listener.accept();
      if (channel == null) {
        return;
      }
      Reactor to = reactors.get(next++ % reactors.size());
      to.runSoon(() -> to.adopt(channel));
    }
  }

  /**
   * Most likely out of file descriptors: asking again at once would only burn the reactor's time.
   */
  @Override
  public void lost(IOException reason) {
    if (listener.isOpen()) {
      // Whatever becomes of the line of the log: this goes on.
      SelectionKey unused = key.interestOps(0);
      own.timers().set(this, System.nanoTime() + PAUSE_NANOS);
      LOG.log(Level.WARNING, "cannot accept for now: {0}", reason.getMessage());
    }
  }

  @Override
  protected void due() {
    if (key.isValid()) {
      SelectionKey unused = key.interestOps(SelectionKey.OP_ACCEPT);
    }
  }

  /** The port is free when the reactor has selected once more. */
  void close() {
    try {
      listener.close();
    } catch (IOException e) {
      LOG.log(Level.WARNING, "the listener could not be closed", e);
    }
  }
}
