package lab.contract.downstream;

import static java.util.Objects.requireNonNull;

import java.util.Arrays;
import lab.contract.http.ChunkedBody;
import lab.contract.http.HeaderFields;
import lab.contract.http.HttpBytes;
import lab.contract.http.MalformedException;
import org.jspecify.annotations.Nullable;

/**
 * Reads the downstream's answers off one connection, from bytes as they arrive. One thread at a
 * time.
 *
 * <pre>
 *   HEAD --blank line--&gt; COUNTED, CHUNKED or TO_CLOSE --last byte, or close of TO_CLOSE--&gt; WHOLE
 *    ^                                                                                     |
 *    '----------------------------------- forget ------------------------------------------'
 * </pre>
 */
public final class AnswerReader {
  private enum State {
    HEAD,
    COUNTED,
    CHUNKED,
    TO_CLOSE,
    WHOLE
  }

  /** Far above what the downstream sends; protects the heap. */
  public static final int MAX_BODY_BYTES = 1 << 20;

  public static final int MAX_HEAD_BYTES = 16 << 10;

  private static final byte[] NOTHING = new byte[0];

  private final HeaderFields fields;
  private State state = State.HEAD;

  /** The first bytes of a head whose blank line has not come yet. */
  private byte[] partialHead = NOTHING;

  private byte[] body = NOTHING;
  private int filled;
  private @Nullable ChunkedBody chunks;
  private int status;
  private boolean reusable;

  /**
   * @param fields used while a head is read; readers of one thread may share it
   */
  public AnswerReader(HeaderFields fields) {
    this.fields = fields;
  }

  /**
   * Takes bytes of an answer that is not whole yet.
   *
   * @return whether the answer is whole now
   * @throws MalformedException when it is no answer, or too long; the reader is of no more use
   */
  public boolean take(byte[] bytes, int from, int to) throws MalformedException {
    if (state != State.HEAD) {
      takeBody(bytes, from, to);
    } else if (partialHead.length == 0) {
      takeHead(bytes, from, to);
    } else {
      int before = partialHead.length;
      byte[] joined = Arrays.copyOf(partialHead, before + to - from);
      System.arraycopy(bytes, from, joined, before, to - from);
      partialHead = NOTHING;
      takeHead(joined, 0, joined.length);
    }
    return state == State.WHOLE;
  }

  /** Whether the answer is whole if the downstream closes the connection now. */
  public boolean endsWithClose() {
    return state == State.TO_CLOSE;
  }

  /** The status of the answer, which must be whole. */
  public int status() {
    return status;
  }

  /** The body of the answer, which must be whole. */
  public byte[] body() {
    return body;
  }

  /** Whether the connection can take another request after this answer, which must be whole. */
  public boolean isConnectionReusable() {
    return reusable;
  }

  /** Drops the last answer and its buffers, to read another one. */
  public void forget() {
    state = State.HEAD;
    partialHead = NOTHING;
    body = NOTHING;
    filled = 0;
    chunks = null;
  }

  private void takeHead(byte[] bytes, int from, int to) throws MalformedException {
    int end = HttpBytes.endOfHead(bytes, from, to);
    if ((end < 0 ? to : end) - from > MAX_HEAD_BYTES) {
      throw new MalformedException("head too long");
    }
    if (end < 0) {
      partialHead = Arrays.copyOfRange(bytes, from, to);
      return;
    }
    int lineEnd = HttpBytes.endOfLine(bytes, from);
    if (lineEnd - from < 12 || !HttpBytes.is(bytes, from, from + 9, "http/1.1 ")) {
      throw new MalformedException("no HTTP/1.1 answer");
    }
    status = (int) HttpBytes.number(bytes, from + 9, from + 12);
    fields.read(bytes, lineEnd + 1);
    reusable = !fields.close();
    if (fields.chunked()) {
      state = State.CHUNKED;
      chunks = new ChunkedBody(MAX_BODY_BYTES);
    } else if (fields.contentLength() >= 0) {
      if (fields.contentLength() > MAX_BODY_BYTES) {
        throw new MalformedException("body too long");
      }
      state = State.COUNTED;
      body = new byte[(int) fields.contentLength()];
    } else {
      reusable = false;
      // An answer other than 200 is not wanted, so its body is not read.
      state = status == 200 ? State.TO_CLOSE : State.WHOLE;
    }
    takeBody(bytes, end, to);
  }

  private void takeBody(byte[] bytes, int from, int to) throws MalformedException {
    switch (state) {
      case COUNTED -> takeCounted(bytes, from, to);
      case CHUNKED -> takeChunks(requireNonNull(chunks), bytes, from, to);
      case TO_CLOSE -> takeToClose(bytes, from, to);
      case HEAD, WHOLE -> {
        // WHOLE: the body of an answer that is not wanted. HEAD: never.
      }
    }
  }

  private void takeCounted(byte[] bytes, int from, int to) {
    int count = Math.min(to - from, body.length - filled);
    System.arraycopy(bytes, from, body, filled, count);
    filled += count;
    if (filled == body.length) {
      state = State.WHOLE;
      // Bytes that nobody asked for: this answer is whole, but none after it can be trusted.
      reusable &= from + count == to;
    }
  }

  private void takeChunks(ChunkedBody taking, byte[] bytes, int from, int to)
      throws MalformedException {
    int end = taking.take(bytes, from, to);
    if (taking.done()) {
      state = State.WHOLE;
      body = taking.body();
      filled = body.length;
      reusable &= end == to;
    }
  }

  private void takeToClose(byte[] bytes, int from, int to) throws MalformedException {
    int count = to - from;
    if (filled + count > MAX_BODY_BYTES) {
      throw new MalformedException("body too long");
    }
    body = Arrays.copyOf(body, filled + count);
    System.arraycopy(bytes, from, body, filled, count);
    filled += count;
  }
}
