package lab.eventloop;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.channels.SelectionKey;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.List;

/** Takes connections off the accept queue and deals them out to the loops in turn. */
final class Acceptor extends Timers.Timer implements Ready {
  private static final Logger LOG = System.getLogger(Acceptor.class.getName());

  /** So that a flood of connections does not hold up those that are there. */
  private static final int MOST_AT_ONCE = 256;

  private static final long PAUSE_NANOS = 100_000_000;

  private final ServerSocketChannel listener;
  private final SelectionKey key;
  private final Loop own;
  private final List<Loop> loops;
  private int next;

  /**
   * @param own the loop that the key belongs to
   */
  Acceptor(ServerSocketChannel listener, SelectionKey key, Loop own, List<Loop> loops) {
    this.listener = listener;
    this.key = key;
    this.own = own;
    this.loops = loops;
  }

  @Override
  public void ready(SelectionKey selected) throws IOException {
    for (int i = 0; i < MOST_AT_ONCE; i++) {
      SocketChannel channel = listener.accept();
      if (channel == null) {
        return;
      }
      Loop loop = loops.get(next++ % loops.size());
      if (loop == own) {
        loop.adopt(channel);
      } else {
        loop.execute(() -> loop.adopt(channel));
      }
    }
  }

  /** Most likely out of file descriptors: asking again at once would only burn the loop's time. */
  @Override
  public void lost(IOException reason) {
    if (listener.isOpen()) {
      LOG.log(Level.WARNING, "cannot accept for now: {0}", reason.getMessage());
      var _ = key.interestOps(0);
      own.timers().set(this, System.nanoTime() + PAUSE_NANOS);
    }
  }

  @Override
  void due() {
    if (key.isValid()) {
      var _ = key.interestOps(SelectionKey.OP_ACCEPT);
    }
  }

  /** The port is free when the loop has selected once more. */
  void close() {
    try {
      listener.close();
    } catch (IOException e) {
      LOG.log(Level.WARNING, "the listener could not be closed", e);
    }
  }
}
