package lab.wire;

/**
 * What a connection reads into. It grows where a read has filled it, and is short again after a
 * message that used less than a quarter of it. One thread at a time.
 */
public final class ReadBuffer {
  private static final int GROWTH = 4;

  private final int shortest;
  private final int longest;
  private byte[] bytes;

  /** What the last read of this message took, and all of them together. */
  private int last;

  private long sum;

  /** It never gets longer than the longest, even if messages are. */
  public ReadBuffer(int shortest, int longest) {
    this.shortest = shortest;
    this.longest = longest;
    this.bytes = new byte[shortest];
  }

  /** What was read into last. */
  public byte[] bytes() {
    return bytes;
  }

  /** What to read into next. */
  public byte[] next() {
    if (last == bytes.length && last < longest) {
      bytes = new byte[GROWTH * last];
    }
    return bytes;
  }

  /** A read has put so many bytes into it; less than 0 at the end of the input. */
  public void took(int count) {
    last = count;
    sum += Math.max(0, count);
  }

  /** The message is whole: the next read is of another one. */
  public void end() {
    if (bytes.length > shortest && sum < bytes.length / GROWTH) {
      bytes = new byte[shortest];
    }
    last = 0;
    sum = 0;
  }
}
