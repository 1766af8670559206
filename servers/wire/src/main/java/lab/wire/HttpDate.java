package lab.wire;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.time.Instant;
import java.time.InstantSource;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;

/** The time in a header field {@code Date} (RFC 9110, 5.6.7), written once a second. Any thread. */
public final class HttpDate {
  @SuppressWarnings("ArrayRecordComponent") // Handed on, never compared.
  private record Written(long second, String text, byte[] bytes) {}

  private static final DateTimeFormatter FORMAT =
      DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.US)
          .withZone(ZoneOffset.UTC);

  private final InstantSource clock;
  private volatile Written last = new Written(0, "", new byte[0]);

  /** By the system's clock. */
  public HttpDate() {
    this(InstantSource.system());
  }

  HttpDate(InstantSource clock) {
    this.clock = clock;
  }

  /** Returns the date of an answer now: the same object all through a second. */
  public String now() {
    return written().text;
  }

  /** Returns the same in bytes, not to be changed. */
  byte[] bytes() {
    return written().bytes;
  }

  private Written written() {
    long second = clock.millis() / 1000;
    Written known = last;
    if (known.second != second) {
      String text = FORMAT.format(Instant.ofEpochSecond(second));
      known = new Written(second, text, text.getBytes(US_ASCII));
      last = known;
    }
    return known;
  }
}
