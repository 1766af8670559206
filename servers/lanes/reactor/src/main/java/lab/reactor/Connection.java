package lab.reactor;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import lab.spec.Answer;
import lab.spec.Outcome;
import lab.wire.AnswerWriter;
import lab.wire.MalformedException;
import lab.wire.Request;
import lab.wire.RequestReader;
import org.jspecify.annotations.Nullable;

/**
 * A client's connection: one request at a time, pipelined ones wait in its reader.
 *
 * <pre>
 *          first byte               whole request             answer sent
 *   IDLE ------------> RECEIVING ----------------> WORKING -----------------------> IDLE
 *    ^                     |                          |
 *    |                     | 400, 431                 | the rest of a short write, or the last answer
 *    |      all written    v                          v
 *    '------------------ WRITING &lt;--------------------'
 *                          |  closes
 *                          v
 *                      LINGERING --EOF, 1-2 s, 1 MiB--> CLOSED &lt;-- reset, idle too long, in any state
 * </pre>
 *
 * <p>All of it is the reactor's, but for an answer: whoever worked on the request sends it, on any
 * thread, and clears {@link #isWorking}. The reactor hears of that only if something came
 * meanwhile, if the answer did not fit, or if it was the last one. As a rule the selector does
 * nothing for an answer, and a key is neither cancelled nor changed.
 *
 * <p>While it is idle it holds no buffer. LINGERING reads on after a refusal or a last answer, as
 * closing with unread input would reset the connection and take the answer from the client.
 */
final class Connection implements Reactor.Ready {
  private enum State {
    IDLE,
    RECEIVING,
    WORKING,
    WRITING,
    LINGERING,
    CLOSED
  }

  private static final Logger LOG = System.getLogger(Connection.class.getName());

  private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

  /** The first sweep after it ends it. */
  private static final long LINGER_NANOS = 1_000_000_000;

  private static final int LINGER_BYTES = 1 << 20;

  private final Reactor reactor;
  private final SocketChannel channel;
  private final SelectionKey key;
  private final RequestReader reader;
  private State state = State.IDLE;
  private boolean inputEnded;
  private int lingerBytes;

  /** Since when it is the client's turn. Written by whoever answers before {@link #isWorking}. */
  private long quietSinceNanos;

  /** Set by the reactor, cleared by whoever answers. */
  private volatile boolean isWorking;

  /** While it works: more input is there, or its end. Set by the reactor. */
  private volatile boolean hasMore;

  // The answer that the reactor writes.
  private ByteBuffer unwritten = NOTHING;
  private @Nullable Exchange answered;
  private Outcome outcome = Outcome.OK;
  private boolean closes;

  Connection(Reactor reactor, SocketChannel channel, SelectionKey key) {
    this.reactor = reactor;
    this.channel = channel;
    this.key = key;
    this.reader = new RequestReader(reactor.requestHead);
    this.quietSinceNanos = System.nanoTime();
  }

  // --- the thread that answers ------------------------------------------------------------------

  /** True if the connection stays open after the answer to this request. */
  boolean staysAfter(Request request) {
    return request.keepAlive() && !reactor.isStopping();
  }

  /** True once it is closed: whatever is worked on for it is for nobody. */
  boolean isClosed() {
    return !channel.isOpen();
  }

  /** Sends an answer, and leaves the connection to the reactor. */
  void send(Exchange exchange, byte[] answer, Outcome how, boolean stays) {
    if (isClosed()) {
      // To write would make an exception, for each of a crowd that has left.
      exchange.end(Outcome.ABORTED);
      return;
    }
    ByteBuffer out = ByteBuffer.wrap(answer);
    boolean begun = false;
    try {
      int unused = channel.write(out);
      begun = true;
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "the client was gone before its answer", e);
      return;
    } finally {
      // Or, after an error, its connection would wait for ever.
      if (!begun) {
        abort();
        exchange.end(Outcome.ABORTED);
      }
    }
    if (out.hasRemaining() || !stays) {
      reactor.runSoon(() -> guard(() -> finish(exchange, out, how, !stays)));
      return;
    }
    long sentNanos = System.nanoTime();
    quietSinceNanos = sentNanos;
    isWorking = false;
    // Either this sees that more has come, or the reactor sees that this has left.
    if (hasMore || reactor.isStopping()) {
      reactor.runSoon(() -> guard(this::resume));
    }
    exchange.end(how, sentNanos);
  }

  void abort() {
    reactor.runSoon(this::close);
  }

  // --- the reactor's thread --------------------------------------------------------------------

  @Override
  public void ready(SelectionKey selected) throws IOException {
    if (selected.isWritable()) {
      write();
      resume();
    }
    if (state != State.CLOSED && selected.isReadable()) {
      read();
    }
  }

  /** Closes it if it has kept the server waiting for longer than that. */
  void closeIfQuiet(long nowNanos, long timeoutNanos) {
    settle();
    long most =
        switch (state) {
          case IDLE, RECEIVING, WRITING -> timeoutNanos;
          case LINGERING -> LINGER_NANOS;
          case WORKING, CLOSED -> Long.MAX_VALUE;
        };
    if (nowNanos - quietSinceNanos > most) {
      close();
    }
  }

  /** The server stops: what is not being worked on ends now. */
  void stop() {
    settle();
    if (state == State.IDLE || state == State.RECEIVING) {
      close();
    }
  }

  void close() {
    if (state == State.CLOSED) {
      return;
    }
    state = State.CLOSED;
    reader.drop();
    unwritten = NOTHING;
    endAnswered(Outcome.ABORTED);
    reactor.closed();
    try {
      channel.close();
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "a connection could not be closed", e);
    }
  }

  /** Notices that an answer was sent. */
  private void settle() {
    if (state == State.WORKING && !isWorking) {
      state = State.IDLE;
    }
  }

  private void read() throws IOException {
    int count = reactor.fill(channel);
    settle();
    if (state == State.LINGERING) {
      lingerBytes -= count;
      if (count < 0 || lingerBytes < 0) {
        close();
      }
      return;
    }
    if (count < 0) {
      // Half closed: the client may still want its answer.
      inputEnded = true;
    } else {
      reader.add(reactor.input(), count);
    }
    goOn();
    if (state == State.WORKING) {
      hasMore = inputEnded || !reader.isIdle();
      if (!isWorking) {
        resume();
      }
    }
  }

  /** What is left on the reactor by whoever answers. */
  private interface Task {
    void run() throws IOException;
  }

  /** Runs such a task. What fails then is this connection's fault, and breaks no other. */
  private void guard(Task task) {
    try {
      task.run();
    } catch (IOException e) {
      lost(e);
    } catch (RuntimeException e) {
      LOG.log(Level.ERROR, "a bug: one connection is given up", e);
      close();
    }
  }

  /** Goes on with what came while a request was worked on. */
  private void resume() throws IOException {
    settle();
    if (reactor.isStopping()) {
      stop();
    }
    goOn();
  }

  private void goOn() throws IOException {
    parse();
    if (state == State.CLOSED) {
      return;
    }
    // With more pipelined than is good for it the client's own buffers have to hold the rest.
    boolean hasRoom = reader.isIdle() || reader.unused() < RequestReader.MAX_HEAD_BYTES;
    boolean reads = !inputEnded && (hasRoom || state == State.RECEIVING);
    int interest = key.interestOps();
    if (reads != ((interest & SelectionKey.OP_READ) != 0)) {
      key.interestOps(interest ^ SelectionKey.OP_READ);
    }
    reader.keep();
  }

  private void parse() throws IOException {
    while (state == State.IDLE || state == State.RECEIVING) {
      Request next;
      try {
        next = reader.next();
      } catch (MalformedException e) {
        reactor.group.requests.malformed();
        reader.drop();
        start(null, ByteBuffer.wrap(reactor.group.answers.refuse(e)), Outcome.OK, true);
        return;
      }
      if (reader.takeContinue()) {
        promise();
      }
      if (next != null) {
        handOver(new Exchange(reactor.group, this, next, reactor.probe().readyNanos()));
      } else if (inputEnded) {
        close();
      } else {
        if (state == State.IDLE && !reader.isIdle()) {
          state = State.RECEIVING;
          quietSinceNanos = reactor.probe().selectedNanos();
        }
        return;
      }
    }
  }

  private void handOver(Exchange exchange) throws IOException {
    hasMore = inputEnded || !reader.isIdle();
    if (!reactor.group.admits()) {
      exchange.begin();
      boolean stays = staysAfter(exchange.request());
      byte[] refusal = reactor.group.answers.write(exchange.request(), Answer.QUEUE_FULL, stays);
      start(exchange, ByteBuffer.wrap(refusal), Outcome.REJECTED, !stays);
      return;
    }
    state = State.WORKING;
    isWorking = true;
    try {
      reactor.handle(exchange);
    } catch (Throwable e) {
      reactor.group.admission.leave();
      throw e;
    }
  }

  /** Tells a client that waits whether to send its body; so few bytes always find room. */
  private void promise() throws IOException {
    ByteBuffer out = ByteBuffer.wrap(AnswerWriter.CONTINUE);
    int unused = channel.write(out);
    if (out.hasRemaining()) {
      throw new IOException("no room for 25 bytes");
    }
  }

  /** Writes what had no room, or ends what has its last answer. */
  private void finish(Exchange exchange, ByteBuffer rest, Outcome how, boolean last)
      throws IOException {
    if (state == State.CLOSED) {
      exchange.end(Outcome.ABORTED);
      return;
    }
    isWorking = false;
    start(exchange, rest, how, last);
    resume();
  }

  private void start(@Nullable Exchange exchange, ByteBuffer answer, Outcome how, boolean last)
      throws IOException {
    answered = exchange;
    unwritten = answer;
    outcome = how;
    closes = last;
    state = State.WRITING;
    write();
  }

  private void write() throws IOException {
    if (state != State.WRITING) {
      return;
    }
    if (unwritten.hasRemaining()) {
      int unused = channel.write(unwritten);
    }
    boolean waits = unwritten.hasRemaining();
    if (waits != ((key.interestOps() & SelectionKey.OP_WRITE) != 0)) {
      int unused =
          waits
              ? key.interestOpsOr(SelectionKey.OP_WRITE)
              : key.interestOpsAnd(~SelectionKey.OP_WRITE);
    }
    quietSinceNanos = reactor.probe().selectedNanos();
    if (waits) {
      return;
    }
    unwritten = NOTHING;
    boolean refused = answered == null;
    endAnswered(outcome);
    if (!closes) {
      state = State.IDLE;
    } else if ((refused || reader.unused() > 0) && !inputEnded) {
      linger();
    } else {
      close();
    }
  }

  private void endAnswered(Outcome how) {
    Exchange ending = answered;
    answered = null;
    if (ending != null) {
      ending.end(how);
    }
  }

  /** Reads on: closing with unread input would reset the connection and take the answer away. */
  private void linger() throws IOException {
    state = State.LINGERING;
    reader.drop();
    lingerBytes = LINGER_BYTES;
    SocketChannel unused = channel.shutdownOutput();
  }

  @Override
  public void lost(IOException reason) {
    LOG.log(Level.DEBUG, "the client was gone", reason);
    close();
  }
}
