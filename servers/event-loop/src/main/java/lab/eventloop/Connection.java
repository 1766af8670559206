package lab.eventloop;

import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import lab.contract.Answer;
import lab.contract.Outcome;
import lab.wire.AnswerWriter;
import lab.wire.MalformedException;
import lab.wire.Request;
import lab.wire.RequestReader;
import org.jspecify.annotations.Nullable;

/**
 * A client's connection: one request at a time, pipelined ones wait in its input.
 *
 * <pre>
 *             first byte              head and body read           the loop's turn
 *   IDLE ------------------&gt; RECEIVING ----------------&gt; QUEUED ----------------&gt; WORKING
 *    ^                        |  ^                           |                          |
 *    |                        |  | more was pipelined        | no place: 503            | answer
 *    |   all written          |  |                           v                          v
 *    '------------------------|--'----------------------- WRITING &lt;---------------------'
 *                             |                              |   (again when the socket takes more)
 *               malformed 400 | too long 431                 | "Connection: close", stopping, EOF
 *                             v                              v
 *                        LINGERING --EOF, 1-2 s, 1 MiB--&gt;  CLOSED  &lt;-- reset, idle too long, in any state
 * </pre>
 *
 * <p>While it is idle it holds no buffer: input is read into the loop's. LINGERING reads on after a
 * refusal or a last answer, as closing with unread input would reset the connection and take the
 * answer away from the client.
 */
final class Connection implements Ready {
  private enum State {
    IDLE,
    RECEIVING,
    QUEUED,
    WORKING,
    WRITING,
    LINGERING,
    CLOSED
  }

  private static final Logger LOG = System.getLogger(Connection.class.getName());
  private static final byte[] NOTHING = new byte[0];

  /** The first sweep after it ends it. */
  private static final long LINGER_NANOS = 1_000_000_000;

  private static final int LINGER_BYTES = 1 << 20;

  private final Loop loop;
  private final SocketChannel channel;
  private final SelectionKey key;
  private State state = State.IDLE;
  private long quietSinceNanos;

  private final RequestReader reader;
  private boolean isParsing;
  private boolean inputEnded;
  private int lingerBytes;

  /** The request from its end to its answer's. */
  private @Nullable Exchange exchange;

  private boolean isAdmitted;

  /** The answer being written, and how many bytes of it have been. */
  private byte[] answer = NOTHING;

  private int written;
  private Outcome outcome = Outcome.OK;
  private boolean closeAfter;
  private boolean waitsForRoom;

  Connection(Loop loop, SocketChannel channel, SelectionKey key) {
    this.loop = loop;
    this.channel = channel;
    this.key = key;
    this.reader = new RequestReader(loop.requestHead());
    loop.idleChanged(1);
    beQuiet();
  }

  @Override
  public void ready(SelectionKey selected) throws IOException {
    if (selected.isWritable()) {
      write();
    }
    if (state != State.CLOSED && selected.isReadable()) {
      read();
    }
  }

  @Override
  public void lost(IOException reason) {
    close();
  }

  /** Closes it if it waits for its client, and has for longer than that. */
  void closeIfQuiet(long nowNanos, Duration timeout) {
    long most =
        switch (state) {
          case IDLE, RECEIVING, WRITING -> timeout.toNanos();
          case LINGERING -> LINGER_NANOS;
          case QUEUED, WORKING, CLOSED -> Long.MAX_VALUE;
        };
    if (nowNanos - quietSinceNanos > most) {
      close();
    }
  }

  /** Its turn in the loop's queue has come. */
  void begin(long nowNanos) {
    Exchange current = requireNonNull(exchange);
    current.begin(loop.requests(), nowNanos);
    if (state == State.CLOSED) {
      end(Outcome.ABORTED);
      return;
    }
    become(State.WORKING);
    loop.routes().begin(current.call(), current);
  }

  /** Says no at once: there is no place to wait for a turn in. */
  private void reject() {
    Exchange current = requireNonNull(exchange);
    current.begin(loop.requests(), System.nanoTime());
    become(State.WORKING);
    answer(current, Answer.QUEUE_FULL);
  }

  /** Answers the request at work; any other's answer comes too late and is dropped. */
  void answer(Exchange of, Answer with) {
    if (of != exchange || state == State.WRITING) {
      return;
    }
    if (state == State.CLOSED) {
      end(Outcome.ABORTED);
      return;
    }
    outcome = with.outcome();
    // With more requests at hand it would not be idle.
    boolean mayStay = !reader.isIdle() || !loop.hasEnoughIdle();
    closeAfter = !of.request().keepAlive() || loop.isStopping() || !mayStay;
    answer = loop.answers().write(of.request(), with, !closeAfter);
    become(State.WRITING);
    try {
      write();
    } catch (IOException e) {
      lost(e);
    }
  }

  /** The server stops: what is not being worked on ends now. */
  void stop() {
    if (state == State.IDLE || state == State.RECEIVING) {
      close();
    }
  }

  void close() {
    if (state == State.CLOSED) {
      return;
    }
    boolean wasWriting = state == State.WRITING;
    become(State.CLOSED);
    reader.drop();
    answer = NOTHING;
    if (wasWriting && exchange != null) {
      end(Outcome.ABORTED);
    }
    loop.closed();
    try {
      channel.close();
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "a connection could not be closed", e);
    }
  }

  // --- reading --------------------------------------------------------------------------------

  private void read() throws IOException {
    int count = loop.fill(channel);
    if (count < 0) {
      inputEnded = true;
      if (state == State.QUEUED || state == State.WORKING || state == State.WRITING) {
        // Half closed: the client may still want its answer.
        var _ = key.interestOpsAnd(~SelectionKey.OP_READ);
      } else {
        close();
      }
      return;
    }
    if (state == State.LINGERING) {
      lingerBytes -= count;
      if (lingerBytes < 0) {
        close();
      }
      return;
    }
    reader.add(loop.input(), count);
    if (state == State.IDLE || state == State.RECEIVING) {
      parse();
    } else if (reader.unused() >= RequestReader.MAX_HEAD_BYTES) {
      // More pipelined than is good for it: the client's own buffers have to hold the rest.
      var _ = key.interestOpsAnd(~SelectionKey.OP_READ);
    }
    reader.keep();
  }

  /** Uses the input up to a request that is to be worked on. */
  private void parse() throws IOException {
    isParsing = true;
    try {
      boolean goesOn = true;
      while (goesOn && (state == State.IDLE || state == State.RECEIVING)) {
        goesOn = receive();
      }
    } finally {
      isParsing = false;
    }
    if (inputEnded && (state == State.IDLE || state == State.RECEIVING)) {
      close();
    }
  }

  /** Returns false when there must be more input first. */
  private boolean receive() throws IOException {
    Request next;
    try {
      next = reader.next();
    } catch (MalformedException e) {
      refuse(e);
      return false;
    }
    if (reader.takeContinue()) {
      promise();
    }
    if (next == null) {
      if (state == State.IDLE && !reader.isIdle()) {
        become(State.RECEIVING);
        beQuiet();
      }
      return false;
    }
    exchange = new Exchange(this, next, loop.resolve(next), loop.clock().readyNanos());
    become(State.QUEUED);
    if (loop.admission().tryEnter()) {
      isAdmitted = true;
      loop.queue(this);
    } else {
      reject();
    }
    return true;
  }

  /** Tells a client that asks whether to send its body; so few bytes always find room. */
  private void promise() throws IOException {
    ByteBuffer out = loop.output().clear().put(AnswerWriter.CONTINUE).flip();
    int _ = channel.write(out);
    if (out.hasRemaining()) {
      throw new IOException("no room for 25 bytes");
    }
  }

  // --- writing --------------------------------------------------------------------------------

  private void refuse(MalformedException reason) throws IOException {
    loop.requests().malformed();
    exchange = null;
    reader.drop();
    closeAfter = true;
    answer = loop.answers().refuse(reason);
    become(State.WRITING);
    write();
  }

  private void write() throws IOException {
    while (written < answer.length) {
      ByteBuffer out = loop.output().clear();
      out.put(answer, written, Math.min(out.remaining(), answer.length - written)).flip();
      written += channel.write(out);
      if (out.hasRemaining()) {
        if (!waitsForRoom) {
          waitsForRoom = true;
          var _ = key.interestOpsOr(SelectionKey.OP_WRITE);
        }
        beQuiet();
        return;
      }
    }
    writtenAll();
  }

  private void writtenAll() throws IOException {
    answer = NOTHING;
    written = 0;
    if (waitsForRoom) {
      waitsForRoom = false;
      var _ = key.interestOpsAnd(~SelectionKey.OP_WRITE);
    }
    boolean refused = exchange == null;
    if (!refused) {
      end(outcome);
    }
    if (closeAfter) {
      if ((refused || reader.unused() > 0) && !inputEnded) {
        linger();
      } else {
        close();
      }
      return;
    }
    become(State.IDLE);
    beQuiet();
    if (isParsing) {
      return;
    }
    if (reader.unused() > 0 || inputEnded) {
      parse();
      reader.keep();
    }
    if (state != State.CLOSED
        && !inputEnded
        && reader.unused() <= RequestReader.MAX_HEAD_BYTES
        && (key.interestOps() & SelectionKey.OP_READ) == 0) {
      var _ = key.interestOpsOr(SelectionKey.OP_READ);
    }
  }

  private void linger() throws IOException {
    become(State.LINGERING);
    reader.drop();
    lingerBytes = LINGER_BYTES;
    var _ = channel.shutdownOutput();
    // It is off when there was more than could be kept.
    var _ = key.interestOps(SelectionKey.OP_READ);
    beQuiet();
  }

  private void end(Outcome how) {
    if (isAdmitted) {
      isAdmitted = false;
      loop.admission().leave();
    }
    requireNonNull(exchange).end(loop.requests(), how, System.nanoTime());
    exchange = null;
  }

  private void become(State next) {
    if (state == State.IDLE) {
      loop.idleChanged(-1);
    }
    if (next == State.IDLE) {
      loop.idleChanged(1);
    }
    state = next;
  }

  /** From now on the client's turn counts as one more wait. */
  private void beQuiet() {
    quietSinceNanos = loop.clock().selectedNanos();
  }
}
