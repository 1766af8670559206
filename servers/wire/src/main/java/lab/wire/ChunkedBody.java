package lab.wire;

import org.jspecify.annotations.Nullable;

/**
 * Takes a chunked body apart as it arrives.
 *
 * <pre>
 *   SIZE --';'--> EXTENSION --LF--> DATA --counted--> DATA_END --LF--> SIZE
 *     '---------------LF--------------'
 *   size 0: LF --> TRAILER --blank line--> DONE
 * </pre>
 */
public final class ChunkedBody {
  private enum State {
    SIZE,
    EXTENSION,
    DATA,
    DATA_END,
    TRAILER,
    DONE
  }

  /** Protects the reader against lines without an end. */
  private static final int MAX_LINE = 256;

  private final @Nullable BodyBuffer body;
  private State state = State.SIZE;
  private long left;
  private int lineLength;
  private boolean afterCr;

  /** The body takes the chunks' data; without it a body of any length is passed over. */
  public ChunkedBody(@Nullable BodyBuffer body) {
    this.body = body;
  }

  public boolean done() {
    return state == State.DONE;
  }

  /** Takes the bytes that belong to the body and returns the index after them. */
  public int take(byte[] bytes, int from, int to) throws MalformedException {
    int at = from;
    while (at < to && state != State.DONE) {
      if (state == State.DATA) {
        int count = (int) Math.min(left, to - at);
        if (body != null) {
          body.append(bytes, at, at + count);
        }
        at += count;
        left -= count;
        if (left == 0) {
          state = State.DATA_END;
        }
      } else {
        takeLineByte(bytes[at++]);
      }
    }
    return at;
  }

  private void takeLineByte(byte b) throws MalformedException {
    if (afterCr && b != '\n') {
      // Whoever takes it for the line's end sees another chunk (RFC 9112, 2.2).
      throw new MalformedException("a CR that no LF follows");
    }
    afterCr = b == '\r';
    if (afterCr) {
      return;
    }
    if (b == '\n') {
      endLine();
      return;
    }
    if (++lineLength > MAX_LINE) {
      throw new MalformedException("a line in a chunked body is too long");
    }
    switch (state) {
      case SIZE -> {
        int digit = Character.digit(b, 16);
        if (b == ';' && lineLength > 1) {
          state = State.EXTENSION;
        } else if (digit < 0 || lineLength > 8) {
          throw new MalformedException("no chunk size");
        } else {
          left = 16 * left + digit;
        }
      }
      case DATA_END -> throw new MalformedException("chunk longer than it says");
      default -> {
        // Extensions and trailers mean nothing here.
      }
    }
  }

  private void endLine() throws MalformedException {
    switch (state) {
      case SIZE, EXTENSION -> {
        if (lineLength == 0) {
          throw new MalformedException("no chunk size");
        }
        state = left == 0 ? State.TRAILER : State.DATA;
      }
      case DATA_END -> state = State.SIZE;
      case TRAILER -> state = lineLength == 0 ? State.DONE : State.TRAILER;
      case DATA, DONE -> throw new IllegalStateException(state.name());
    }
    lineLength = 0;
  }
}
