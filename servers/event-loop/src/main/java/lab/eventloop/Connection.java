package lab.eventloop;

import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.Arrays;
import lab.contract.Answer;
import lab.contract.Outcome;
import lab.contract.http.ChunkedBody;
import lab.contract.http.HttpBytes;
import lab.contract.http.MalformedException;
import lab.contract.serving.AnswerHead;
import lab.contract.serving.Refusals;
import lab.contract.serving.RequestHead;
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
 * <p>While it is idle it holds no buffer: input is read into the loop's, and only what cannot be
 * used yet is copied. LINGERING reads on after a refusal or a last answer, as closing with unread
 * input would reset the connection and take the answer away from the client.
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

  /** Input not used yet, from {@link #from} to {@link #to}; the loop's array while it is read. */
  private byte[] input = NOTHING;

  private boolean isBorrowed;

  private int from;
  private int to;

  /** Where to look on for the end of the head. */
  private int scanned;

  private boolean isParsing;
  private boolean inputEnded;

  /** What is left of a request's body to be passed over: bytes, or chunks. */
  private long bodyLeft;

  private @Nullable ChunkedBody chunks;

  /** The request from its head's end to its answer's. */
  private @Nullable Exchange exchange;

  private boolean isAdmitted;

  /** The answer being written: head, body, and how many bytes of both have been. */
  private byte[] head = NOTHING;

  private byte[] body = NOTHING;
  private int written;
  private Outcome outcome = Outcome.OK;
  private boolean closeAfter;
  private boolean waitsForRoom;

  Connection(Loop loop, SocketChannel channel, SelectionKey key) {
    this.loop = loop;
    this.channel = channel;
    this.key = key;
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
  void answer(Exchange of, Answer answer) {
    if (of != exchange || state == State.WRITING) {
      return;
    }
    if (state == State.CLOSED) {
      end(Outcome.ABORTED);
      return;
    }
    outcome = answer.outcome();
    // With more requests at hand it would not be idle.
    passBlankLines();
    closeAfter = !of.keepAlive() || loop.isStopping() || (from == to && loop.hasEnoughIdle());
    head = loop.heads().of(answer, closeAfter ? "close" : of.connectionHeader());
    body = of.answerHasBody() ? answer.body() : NOTHING;
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
    boolean wasReceiving = state == State.RECEIVING;
    become(State.CLOSED);
    input = NOTHING;
    from = 0;
    to = 0;
    head = NOTHING;
    body = NOTHING;
    if (wasReceiving) {
      exchange = null;
    } else if (wasWriting && exchange != null) {
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
      bodyLeft -= count;
      if (bodyLeft < 0) {
        close();
      }
      return;
    }
    take(count);
    if (state == State.IDLE || state == State.RECEIVING) {
      parse();
    } else if (to - from >= RequestHead.MAX_BYTES) {
      // More pipelined than is good for it: the client's own buffers have to hold the rest.
      var _ = key.interestOpsAnd(~SelectionKey.OP_READ);
    }
    keepUnused();
  }

  /** Adds what was read into the loop's array to the input. */
  private void take(int count) {
    byte[] fresh = loop.input();
    if (from == to) {
      input = fresh;
      isBorrowed = true;
      from = 0;
      to = count;
      scanned = 0;
      return;
    }
    int unused = to - from;
    if (from + unused + count > input.length) {
      byte[] larger =
          new byte[Math.max(unused + count, Math.min(2 * unused, RequestHead.MAX_BYTES))];
      System.arraycopy(input, from, larger, 0, unused);
      input = larger;
      scanned = Math.max(0, scanned - from);
      from = 0;
      to = unused;
    }
    System.arraycopy(fresh, 0, input, to, count);
    to += count;
  }

  /** Copies out of the loop's array, which the next connection reads into. */
  private void keepUnused() {
    if (from == to) {
      input = NOTHING;
      isBorrowed = false;
      from = 0;
      to = 0;
      scanned = 0;
    } else if (isBorrowed) {
      input = Arrays.copyOfRange(input, from, to);
      isBorrowed = false;
      scanned = Math.max(0, scanned - from);
      to -= from;
      from = 0;
    }
  }

  /** Uses the input up to a request that is to be worked on. */
  private void parse() throws IOException {
    isParsing = true;
    try {
      boolean goesOn = true;
      while (goesOn && from < to && (state == State.IDLE || state == State.RECEIVING)) {
        goesOn = exchange == null ? parseHead() : passBody();
      }
    } finally {
      isParsing = false;
    }
    if (inputEnded && (state == State.IDLE || state == State.RECEIVING)) {
      close();
    }
  }

  /** Blank lines before a request are allowed for (RFC 9112, 2.2), and begin none. */
  private void passBlankLines() {
    while (from < to && (input[from] == '\r' || input[from] == '\n')) {
      from++;
    }
  }

  /** Returns false when there must be more input first. */
  private boolean parseHead() throws IOException {
    passBlankLines();
    if (from == to) {
      return false;
    }
    if (state == State.IDLE) {
      become(State.RECEIVING);
      beQuiet();
    }
    int end = HttpBytes.endOfHead(input, Math.max(from, scanned), to);
    if ((end < 0 ? to : end) - from > RequestHead.MAX_BYTES) {
      refuse(Refusals.HEAD_TOO_LONG);
      return false;
    }
    if (end < 0) {
      scanned = Math.max(from, to - 2);
      return false;
    }
    RequestHead request = loop.requestHead();
    try {
      request.read(input, from);
    } catch (MalformedException e) {
      refuse(Refusals.malformed(e));
      return false;
    }
    from = end;
    scanned = end;
    exchange =
        new Exchange(
            this,
            request.call(),
            request.isHttp11(),
            request.keepAlive(),
            request.answerHasBody(),
            loop.clock().readyNanos());
    bodyLeft = Math.max(0, request.fields().contentLength());
    chunks = request.fields().chunked() ? new ChunkedBody(null) : null;
    if (request.expectsContinue() && (bodyLeft > 0 || chunks != null)) {
      promise();
    }
    return passBody();
  }

  /** Passes over the body, as no route has use for one; returns false when there is more of it. */
  private boolean passBody() throws IOException {
    if (chunks != null) {
      try {
        from = chunks.take(input, from, to);
      } catch (MalformedException e) {
        exchange = null;
        refuse(Refusals.malformed(e));
        return false;
      }
      if (!chunks.done()) {
        return false;
      }
      chunks = null;
    } else {
      int count = (int) Math.min(bodyLeft, to - from);
      from += count;
      bodyLeft -= count;
      if (bodyLeft > 0) {
        return false;
      }
    }
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
    ByteBuffer out = loop.output().clear().put(AnswerHead.CONTINUE).flip();
    int _ = channel.write(out);
    if (out.hasRemaining()) {
      throw new IOException("no room for 25 bytes");
    }
  }

  // --- writing --------------------------------------------------------------------------------

  private void refuse(Answer answer) throws IOException {
    loop.requests().malformed();
    exchange = null;
    from = to;
    closeAfter = true;
    head = loop.heads().of(answer, "close");
    body = answer.body();
    become(State.WRITING);
    write();
  }

  private void write() throws IOException {
    int length = head.length + body.length;
    while (written < length) {
      ByteBuffer out = loop.output().clear();
      if (written < head.length) {
        out.put(head, written, head.length - written);
      }
      int bodyFrom = Math.max(0, written - head.length);
      out.put(body, bodyFrom, Math.min(out.remaining(), body.length - bodyFrom)).flip();
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
    head = NOTHING;
    body = NOTHING;
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
      if ((refused || from < to) && !inputEnded) {
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
    if (from < to || inputEnded) {
      parse();
      keepUnused();
    }
    if (state != State.CLOSED
        && !inputEnded
        && to - from <= RequestHead.MAX_BYTES
        && (key.interestOps() & SelectionKey.OP_READ) == 0) {
      var _ = key.interestOpsOr(SelectionKey.OP_READ);
    }
  }

  private void linger() throws IOException {
    become(State.LINGERING);
    from = to;
    keepUnused();
    bodyLeft = LINGER_BYTES;
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
