package lab.eventloop;

import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.nio.channels.UnresolvedAddressException;
import lab.reactor.Reactor.Ready;
import lab.spec.DownstreamOutcome;
import lab.wire.AnswerReader;
import lab.wire.MalformedException;
import lab.work.nonblocking.DownstreamPool;
import org.jspecify.annotations.Nullable;

/**
 * One kept-alive HTTP/1.1 connection to the downstream, with one call at a time.
 *
 * <pre>
 *                          request written     first bytes
 *   CONNECTING --connected--&gt; ASKING --&gt; ASKED -----&gt; ANSWERING
 *       |                        ^         |             |    |
 *       | refused                |         | EOF: stale if it was used before, else broken
 *       v                        |         v             |    v
 *     CLOSED &lt;---EOF, bytes--- IDLE &lt;-------------'  EOF, unless it is the answer's end
 * </pre>
 */
final class DownstreamConnection implements Ready, DownstreamPool.Connection {
  private enum State {
    CONNECTING,
    ASKING,
    ASKED,
    ANSWERING,
    IDLE,
    CLOSED
  }

  private static final Logger LOG = System.getLogger(DownstreamConnection.class.getName());

  private final Loop loop;
  private final SelectorPool pool;
  private final SocketChannel channel;
  private final SelectionKey key;
  private final AnswerReader answer;
  private State state = State.CONNECTING;
  private DownstreamPool.@Nullable Call call;
  private boolean usedBefore;
  private int written;
  private long idleSinceNanos;

  private DownstreamConnection(Loop loop, SelectorPool pool, SocketChannel channel)
      throws IOException {
    this.loop = loop;
    this.pool = pool;
    this.channel = channel;
    this.answer = new AnswerReader(pool.answerFields);
    this.key = channel.register(loop.selector(), 0);
    key.attach(this);
  }

  /** Makes a connection, to be connected next; fails when no file descriptor is left. */
  static DownstreamConnection open(Loop loop, SelectorPool pool) throws IOException {
    SocketChannel channel = SocketChannel.open();
    try {
      channel.configureBlocking(false);
      channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
      return new DownstreamConnection(loop, pool, channel);
    } catch (IOException e) {
      channel.close();
      throw e;
    }
  }

  void connect(InetSocketAddress address, DownstreamPool.Call by) {
    call = by;
    try {
      if (channel.connect(address)) {
        connected();
      } else {
        SelectionKey unused = key.interestOps(SelectionKey.OP_CONNECT);
      }
    } catch (IOException e) {
      lost(e);
    } catch (UnresolvedAddressException e) {
      lost(new IOException("the downstream's name is unknown", e));
    }
  }

  @Override
  public void ask(DownstreamPool.Call by) {
    call = by;
    usedBefore = true;
    try {
      send();
    } catch (IOException e) {
      lost(e);
    }
  }

  @Override
  public long idleSinceNanos() {
    return idleSinceNanos;
  }

  @Override
  public boolean isOpen() {
    return state != State.CLOSED;
  }

  @Override
  public void close() {
    if (state == State.CLOSED) {
      return;
    }
    state = State.CLOSED;
    call = null;
    answer.forget();
    try {
      channel.close();
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "a downstream connection could not be closed", e);
    }
  }

  @Override
  public void ready(SelectionKey selected) throws IOException {
    if (state == State.CONNECTING) {
      if (channel.finishConnect()) {
        connected();
      }
      return;
    }
    if (state == State.ASKING && selected.isWritable()) {
      write();
    }
    if (state != State.CLOSED && selected.isReadable()) {
      read();
    }
  }

  @Override
  public void lost(IOException reason) {
    DownstreamPool.Call caller = call;
    boolean stale = usedBefore && (state == State.ASKING || state == State.ASKED);
    DownstreamOutcome outcome =
        state == State.CONNECTING && reason instanceof ConnectException failure
            ? DownstreamOutcome.ofConnect(failure)
            : DownstreamOutcome.ERROR;
    close();
    if (caller == null) {
      return;
    }
    if (stale) {
      caller.stale();
    } else {
      caller.failed(outcome);
    }
  }

  private void connected() throws IOException {
    SelectionKey unused = key.interestOps(SelectionKey.OP_READ);
    send();
  }

  private void send() throws IOException {
    state = State.ASKING;
    written = 0;
    write();
  }

  private void write() throws IOException {
    written += channel.write(pool.request.position(written));
    boolean all = !pool.request.hasRemaining();
    int interest = all ? SelectionKey.OP_READ : SelectionKey.OP_READ | SelectionKey.OP_WRITE;
    if (key.interestOps() != interest) {
      SelectionKey unused = key.interestOps(interest);
    }
    if (all) {
      state = State.ASKED;
    }
  }

  private void read() throws IOException {
    int count = loop.fill(channel);
    if (count == 0) {
      return;
    }
    if (count < 0) {
      if (!answer.endsWithClose()) {
        throw new IOException("closed by the downstream");
      }
      answered();
      return;
    }
    if (state != State.ASKED && state != State.ANSWERING) {
      throw new IOException("an answer to no question");
    }
    state = State.ANSWERING;
    try {
      if (answer.take(loop.input(), 0, count)) {
        answered();
      }
    } catch (MalformedException e) {
      throw new IOException(e);
    }
  }

  private void answered() {
    DownstreamPool.Call caller = requireNonNull(call);
    call = null;
    int status = answer.status();
    byte[] body = answer.body();
    boolean reusable = answer.isConnectionReusable();
    // An idle connection keeps no buffer.
    answer.forget();
    if (reusable) {
      state = State.IDLE;
      idleSinceNanos = loop.probe().selectedNanos();
      pool.keep(this);
    } else {
      close();
    }
    caller.answered(status, body);
  }
}
