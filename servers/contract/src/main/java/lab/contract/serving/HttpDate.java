package lab.contract.serving;

import java.time.Instant;
import java.time.InstantSource;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;

/** The time as answers tell it (RFC 9110, 5.6.7 and 6.6.1), written once a second. Any thread. */
public final class HttpDate {
  private record Written(long second, String text) {}

  private static final DateTimeFormatter FORMAT =
      DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.US)
          .withZone(ZoneOffset.UTC);

  private final InstantSource clock;
  private volatile Written last = new Written(0, "");

  /** By the system's clock. */
  public HttpDate() {
    this(InstantSource.system());
  }

  HttpDate(InstantSource clock) {
    this.clock = clock;
  }

  /** Returns what a header {@code Date} says now: the same object all through a second. */
  public String now() {
    long second = clock.millis() / 1000;
    Written known = last;
    if (known.second != second) {
      known = new Written(second, FORMAT.format(Instant.ofEpochSecond(second)));
      last = known;
    }
    return known.text;
  }
}
