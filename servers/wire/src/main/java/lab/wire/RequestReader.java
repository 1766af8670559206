package lab.wire;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Takes requests out of one connection's input, in any pieces it comes in. Between requests it
 * holds no buffer. One thread at a time.
 *
 * <pre>
 *   add(bytes) --> next() --whole--> Request
 *                     '----null----> keep(), then more input
 * </pre>
 */
public final class RequestReader {
  /** Longer heads are refused. */
  public static final int MAX_HEAD_BYTES = 32 << 10;

  private static final byte[] NOTHING = new byte[0];

  private final RequestHead head;

  /** Input not used yet, from {@link #from} to {@link #to}; perhaps in an array of the caller's. */
  private byte[] input = NOTHING;

  private int from;
  private int to;
  private boolean isBorrowed;

  /** Where the search for the end of the head goes on. */
  private int scanned;

  /** The request whose body is being passed over: so many bytes more of it, or chunks. */
  private @Nullable Request begun;

  private long bodyLeft;
  private @Nullable ChunkedBody chunks;
  private boolean owesContinue;

  /** The head is used while {@link #next} runs; readers of one thread may share it. */
  public RequestReader(RequestHead head) {
    this.head = head;
  }

  /** Adds input, which must not change before {@link #keep} or {@link #drop}. */
  public void add(byte[] bytes, int count) {
    if (from == to) {
      input = bytes;
      isBorrowed = true;
      from = 0;
      to = count;
      scanned = 0;
      return;
    }
    int unused = to - from;
    if (isBorrowed || to + count > input.length) {
      // Doubled, so that a head that comes byte by byte is not copied for each of them.
      int room = Math.max(unused + count, Math.min(2 * unused, MAX_HEAD_BYTES));
      input = Arrays.copyOf(Arrays.copyOfRange(input, from, to), room);
      isBorrowed = false;
      scanned = Math.max(0, scanned - from);
      from = 0;
      to = unused;
    }
    System.arraycopy(bytes, 0, input, to, count);
    to += count;
  }

  /** Returns the next request once its last byte is there; null when more input is needed. */
  public @Nullable Request next() throws MalformedException {
    if (begun == null && !readHead()) {
      return null;
    }
    if (!passBody()) {
      return null;
    }
    Request whole = begun;
    begun = null;
    chunks = null;
    return whole;
  }

  /** True once for each client that waits to be told to send its body. */
  public boolean takeContinue() {
    boolean owed = owesContinue;
    owesContinue = false;
    return owed;
  }

  /** True if nothing of another request is there. Blank lines are nothing (RFC 9112, 2.2). */
  public boolean isIdle() {
    return begun == null && !hasInput();
  }

  /** Input that no request has used yet, in bytes. */
  public int unused() {
    return to - from;
  }

  /** Copies what is unused out of the caller's array. */
  public void keep() {
    if (from == to) {
      drop();
    } else if (isBorrowed) {
      input = Arrays.copyOfRange(input, from, to);
      isBorrowed = false;
      scanned = Math.max(0, scanned - from);
      to -= from;
      from = 0;
    }
  }

  public void drop() {
    input = NOTHING;
    isBorrowed = false;
    from = 0;
    to = 0;
    scanned = 0;
  }

  private boolean hasInput() {
    while (from < to && (input[from] == '\r' || input[from] == '\n')) {
      from++;
    }
    return from < to;
  }

  private boolean readHead() throws MalformedException {
    if (!hasInput()) {
      return false;
    }
    int end = HttpBytes.endOfHead(input, Math.max(from, scanned), to);
    if ((end < 0 ? to : end) - from > MAX_HEAD_BYTES) {
      throw MalformedException.headTooLong(MAX_HEAD_BYTES);
    }
    if (end < 0) {
      scanned = Math.max(from, to - 2);
      return false;
    }
    begun = head.read(input, from);
    from = end;
    scanned = end;
    bodyLeft = Math.max(0, head.fields().contentLength());
    chunks = head.fields().chunked() ? new ChunkedBody(null) : null;
    owesContinue = head.expectsContinue() && (bodyLeft > 0 || chunks != null);
    return true;
  }

  /** Returns false when there is more of the body to come. */
  private boolean passBody() throws MalformedException {
    if (chunks != null) {
      from = chunks.take(input, from, to);
      return chunks.done();
    }
    int count = (int) Math.min(bodyLeft, to - from);
    from += count;
    bodyLeft -= count;
    return bodyLeft == 0;
  }
}
