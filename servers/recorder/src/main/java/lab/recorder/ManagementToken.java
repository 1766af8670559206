package lab.recorder;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpExchange;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import lab.spec.Answer;
import org.jspecify.annotations.Nullable;

/**
 * What the lab's driver and agent show at a management port, which every container can reach. The
 * server knows its SHA-256 only, in hexadecimal; where that is empty nobody has the token.
 */
public record ManagementToken(String sum) {
  public static final Answer NOT_GIVEN = Answer.error(403, "this call needs the server's token");

  private static final String HEADER = "Lab-Token";

  /** Returns the token of a server out of all sums, {@code NAME=SUM,…}. */
  public static ManagementToken of(String server, String sums) {
    String prefix = server + "=";
    return new ManagementToken(
        Arrays.stream(sums.split(",", -1))
            .filter(entry -> entry.startsWith(prefix))
            .map(entry -> entry.substring(prefix.length()))
            .findFirst()
            .orElse(""));
  }

  public boolean isGiven(HttpExchange exchange) {
    return is(exchange.getRequestHeaders().getFirst(HEADER));
  }

  boolean is(@Nullable String given) {
    return given != null
        && MessageDigest.isEqual(sha256(given).getBytes(UTF_8), sum.getBytes(UTF_8));
  }

  private static String sha256(String text) {
    try {
      return HexFormat.of()
          .formatHex(MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8)));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JVM has SHA-256", e);
    }
  }
}
