package lab.eventloop;

import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.nio.channels.UnresolvedAddressException;
import java.util.Arrays;
import lab.contract.DownstreamOutcome;
import org.jspecify.annotations.Nullable;

/**
 * One kept-alive HTTP/1.1 connection to the downstream, with one call at a time.
 *
 * <pre>
 *                          request written     first bytes       blank line          counted,
 *   CONNECTING --connected--&gt; ASKING --&gt; ASKED -----&gt; HEAD ----------&gt; BODY, CHUNKS or TO_END
 *       |                        ^         |                              |
 *       | refused                |         | EOF: stale if it was used    | last byte, or EOF of TO_END
 *       v                        |         v before, else broken          v
 *     CLOSED &lt;---EOF, bytes--- IDLE &lt;----------------------------- answered
 * </pre>
 */
final class DownstreamConnection implements Ready {
  private enum State {
    CONNECTING,
    ASKING,
    ASKED,
    HEAD,
    BODY,
    CHUNKS,
    TO_END,
    IDLE,
    CLOSED
  }

  private static final Logger LOG = System.getLogger(DownstreamConnection.class.getName());
  private static final byte[] NOTHING = new byte[0];

  /** Far above what the downstream sends; protect the heap. */
  private static final int MAX_BODY_BYTES = 1 << 20;

  private static final int MAX_HEAD_BYTES = 16 << 10;

  private final Loop loop;
  private final SocketChannel channel;
  private final byte[] request;
  private final SelectionKey key;
  private State state = State.CONNECTING;
  private DownstreamPool.@Nullable Call call;
  private boolean usedBefore;
  private int written;
  private long idleSinceNanos;

  /** A head that has not come whole; nothing most of the time. */
  private byte[] partialHead = NOTHING;

  private int status;
  private boolean reusable;
  private byte[] body = NOTHING;
  private int bodyFilled;
  private @Nullable Chunks chunks;

  private DownstreamConnection(Loop loop, SocketChannel channel, byte[] request)
      throws IOException {
    this.loop = loop;
    this.channel = channel;
    this.request = request;
    this.key = channel.register(loop.selector(), 0);
    key.attach(this);
  }

  /**
   * Makes one, to be connected next.
   *
   * @throws IOException when the process has no file descriptor left
   */
  static DownstreamConnection open(Loop loop, byte[] request) throws IOException {
    SocketChannel channel = SocketChannel.open();
    try {
      channel.configureBlocking(false);
      channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
      return new DownstreamConnection(loop, channel, request);
    } catch (IOException e) {
      channel.close();
      throw e;
    }
  }

  /** Connects and asks. */
  void connect(InetSocketAddress address, DownstreamPool.Call by) {
    call = by;
    try {
      if (channel.connect(address)) {
        connected();
      } else {
        var _ = key.interestOps(SelectionKey.OP_CONNECT);
      }
    } catch (IOException e) {
      lost(e);
    } catch (UnresolvedAddressException e) {
      lost(new IOException("the downstream's name is unknown", e));
    }
  }

  /** Asks over a connection that is idle. */
  void ask(DownstreamPool.Call by) {
    call = by;
    usedBefore = true;
    try {
      send();
    } catch (IOException e) {
      lost(e);
    }
  }

  /** Waits for the next call. */
  void rest() {
    state = State.IDLE;
    idleSinceNanos = System.nanoTime();
  }

  long idleSinceNanos() {
    return idleSinceNanos;
  }

  boolean isClosed() {
    return state == State.CLOSED;
  }

  /** Closes it; its call, if it has one, is told by whoever closes. */
  void close() {
    if (state == State.CLOSED) {
      return;
    }
    state = State.CLOSED;
    call = null;
    forget();
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
    DownstreamPool.Call of = call;
    boolean stale = usedBefore && (state == State.ASKING || state == State.ASKED);
    DownstreamOutcome outcome =
        state == State.CONNECTING && reason instanceof ConnectException
            ? DownstreamOutcome.REFUSED
            : DownstreamOutcome.ERROR;
    close();
    if (of == null) {
      return;
    }
    if (stale) {
      of.stale();
    } else {
      of.failed(outcome);
    }
  }

  private void connected() throws IOException {
    var _ = key.interestOps(SelectionKey.OP_READ);
    send();
  }

  private void send() throws IOException {
    state = State.ASKING;
    written = 0;
    write();
  }

  private void write() throws IOException {
    ByteBuffer out = loop.output().clear().put(request, written, request.length - written).flip();
    written += channel.write(out);
    boolean all = written == request.length;
    int interest = all ? SelectionKey.OP_READ : SelectionKey.OP_READ | SelectionKey.OP_WRITE;
    if (key.interestOps() != interest) {
      var _ = key.interestOps(interest);
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
    try {
      if (count < 0) {
        if (state != State.TO_END) {
          throw new IOException("closed by the downstream");
        }
        answered(Arrays.copyOf(body, bodyFilled));
      } else {
        take(loop.input(), count);
      }
    } catch (MalformedException e) {
      throw new IOException(e);
    }
  }

  private void take(byte[] bytes, int count) throws IOException, MalformedException {
    switch (state) {
      case ASKED -> {
        state = State.HEAD;
        takeHead(bytes, count);
      }
      case HEAD -> {
        int before = partialHead.length;
        byte[] whole = Arrays.copyOf(partialHead, before + count);
        System.arraycopy(bytes, 0, whole, before, count);
        partialHead = NOTHING;
        takeHead(whole, whole.length);
      }
      case BODY, CHUNKS, TO_END -> takeBody(bytes, 0, count);
      case CONNECTING, ASKING, IDLE, CLOSED -> throw new IOException("an answer to no question");
    }
  }

  private void takeHead(byte[] bytes, int to) throws IOException, MalformedException {
    int end = Bytes.endOfHead(bytes, 0, to);
    if ((end < 0 ? to : end) > MAX_HEAD_BYTES) {
      throw new MalformedException("head too long");
    }
    if (end < 0) {
      partialHead = Arrays.copyOf(bytes, to);
      return;
    }
    int lineEnd = Bytes.endOfLine(bytes, 0);
    if (lineEnd < 12 || !Bytes.is(bytes, 0, 9, "http/1.1 ")) {
      throw new MalformedException("no HTTP/1.1 answer");
    }
    status = (int) Bytes.number(bytes, 9, 12);
    HeaderFields fields = loop.answerFields();
    fields.read(bytes, lineEnd + 1);
    reusable = !fields.close();
    if (fields.chunked()) {
      state = State.CHUNKS;
      chunks = new Chunks(MAX_BODY_BYTES);
    } else if (fields.contentLength() >= 0) {
      state = State.BODY;
      if (fields.contentLength() > MAX_BODY_BYTES) {
        throw new MalformedException("body too long");
      }
      body = new byte[(int) fields.contentLength()];
    } else {
      reusable = false;
      if (status != 200) {
        // Those that have no body end here too; none of them is wanted.
        answered(NOTHING);
        return;
      }
      state = State.TO_END;
    }
    takeBody(bytes, end, to);
  }

  private void takeBody(byte[] bytes, int from, int to) throws MalformedException {
    if (state == State.CHUNKS) {
      Chunks taking = requireNonNull(chunks);
      int end = taking.take(bytes, from, to);
      if (taking.done()) {
        reusable &= end == to;
        answered(taking.body());
      }
      return;
    }
    int count = to - from;
    if (state == State.TO_END) {
      if (bodyFilled + count > MAX_BODY_BYTES) {
        throw new MalformedException("body too long");
      }
      body = Arrays.copyOf(body, bodyFilled + count);
    } else if (count > body.length - bodyFilled) {
      // More than was asked for: this answer is whole, but nothing after it can be trusted.
      reusable = false;
      count = body.length - bodyFilled;
    }
    System.arraycopy(bytes, from, body, bodyFilled, count);
    bodyFilled += count;
    if (state == State.BODY && bodyFilled == body.length) {
      answered(body);
    }
  }

  private void answered(byte[] whole) {
    DownstreamPool.Call of = requireNonNull(call);
    call = null;
    forget();
    of.answered(status, whole, reusable);
  }

  /** An idle connection keeps no buffer. */
  private void forget() {
    partialHead = NOTHING;
    body = NOTHING;
    bodyFilled = 0;
    chunks = null;
  }
}
