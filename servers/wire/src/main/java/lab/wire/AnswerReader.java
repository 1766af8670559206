package lab.wire;

import static java.util.Objects.requireNonNull;

import java.util.Arrays;
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

  /** Most informational answers before an answer. */
  public static final int MAX_INFORMATIONAL = 10;

  private static final byte[] NOTHING = new byte[0];

  private final HeaderFields fields;
  private State state = State.HEAD;

  /** The first bytes of a head whose blank line has not come yet. */
  private byte[] partialHead = NOTHING;

  private final BodyBuffer body = new BodyBuffer(MAX_BODY_BYTES);
  private long left;

  private @Nullable ChunkedBody chunks;
  private int informational;
  private int status;
  private boolean reusable;

  /** The fields are used while a head is read; readers of one thread may share them. */
  public AnswerReader(HeaderFields fields) {
    this.fields = fields;
  }

  /** Takes bytes; true when the answer is whole. After a failure the reader is of no more use. */
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

  public int status() {
    return status;
  }

  public byte[] body() {
    return body.bytes();
  }

  /** Whether the connection can take another request after this answer, which must be whole. */
  public boolean isConnectionReusable() {
    return reusable;
  }

  /** Drops the last answer and its buffers, to read another one. */
  public void forget() {
    state = State.HEAD;
    partialHead = NOTHING;
    informational = 0;
    status = 0;
    reusable = false;
    body.clear();
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
    int lineEnd = HttpBytes.indexOf(bytes, from, bytes.length, '\n');
    status = status(bytes, from, HttpBytes.trimBlanks(bytes, from, lineEnd));
    fields.read(bytes, lineEnd + 1);
    if (status < 200) {
      passOver(bytes, end, to);
      return;
    }
    reusable = !fields.close();
    if (status == 204 || status == 304) {
      // It has no body, whatever its fields say (RFC 9112, 6.3).
      state = State.WHOLE;
      reusable &= end == to;
    } else if (fields.chunked()) {
      state = State.CHUNKED;
      chunks = new ChunkedBody(body);
    } else if (fields.contentLength() >= 0) {
      state = State.COUNTED;
      left = fields.contentLength();
      body.reserve(left);
    } else {
      reusable = false;
      // An answer other than 200 is not wanted, so its body is not read.
      state = status == 200 ? State.TO_CLOSE : State.WHOLE;
    }
    takeBody(bytes, end, to);
  }

  /** Reads {@code HTTP/1.1 200 OK}, with or without the reason. */
  private static int status(byte[] bytes, int from, int to) throws MalformedException {
    int end = from + 12;
    if (to < end
        || !HttpBytes.is(bytes, from, from + 9, "http/1.1 ")
        || (to > end && bytes[end] != ' ')) {
      throw new MalformedException("no HTTP/1.1 answer");
    }
    int status = (int) HttpBytes.number(bytes, from + 9, end);
    if (status < 100 || status == 101) {
      throw new MalformedException("no status, or one of another protocol");
    }
    return status;
  }

  /** The head was of an informational answer: the answer itself follows (RFC 9110, 15.2). */
  private void passOver(byte[] bytes, int from, int to) throws MalformedException {
    if (++informational > MAX_INFORMATIONAL) {
      throw new MalformedException("informational answers without end");
    }
    if (from < to) {
      takeHead(bytes, from, to);
    }
  }

  private void takeBody(byte[] bytes, int from, int to) throws MalformedException {
    switch (state) {
      case COUNTED -> takeCounted(bytes, from, to);
      case CHUNKED -> takeChunks(requireNonNull(chunks), bytes, from, to);
      case TO_CLOSE -> body.append(bytes, from, to);
      case HEAD, WHOLE -> {
        // WHOLE: the body of an answer that is not wanted. HEAD: never.
      }
    }
  }

  private void takeCounted(byte[] bytes, int from, int to) throws MalformedException {
    int count = (int) Math.min(to - from, left);
    body.append(bytes, from, from + count);
    left -= count;
    if (left == 0) {
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
      reusable &= end == to;
    }
  }
}
