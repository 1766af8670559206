package lab.wire;

import java.util.Arrays;

/** A body that grows as its parts arrive, up to a bound. */
public final class BodyBuffer {
  private static final byte[] NOTHING = new byte[0];

  private final int maxBytes;
  private byte[] bytes = NOTHING;
  private int length;

  public BodyBuffer(int maxBytes) {
    this.maxBytes = maxBytes;
  }

  /** Makes room for so many bytes more; doubled, as a part may be one byte. */
  public void reserve(long count) throws MalformedException {
    if (count > maxBytes - length) {
      throw new MalformedException("body too long");
    }
    int needed = length + (int) count;
    if (needed > bytes.length) {
      bytes = Arrays.copyOf(bytes, Math.min(maxBytes, Math.max(needed, 2 * length)));
    }
  }

  /** Adds so many bytes, which the caller writes into {@link #array} from the index returned. */
  public int extend(int count) throws MalformedException {
    reserve(count);
    int at = length;
    length += count;
    return at;
  }

  public void append(byte[] part, int from, int to) throws MalformedException {
    int at = extend(to - from);
    System.arraycopy(part, from, bytes, at, to - from);
  }

  /** The body's room, until there is a larger one. */
  public byte[] array() {
    return bytes;
  }

  public byte[] bytes() {
    return length == bytes.length ? bytes : Arrays.copyOf(bytes, length);
  }

  public void clear() {
    bytes = NOTHING;
    length = 0;
  }
}
