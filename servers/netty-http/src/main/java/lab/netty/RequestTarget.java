package lab.netty;

import java.net.URI;
import java.net.URISyntaxException;
import org.jspecify.annotations.Nullable;

/**
 * What a request asks for, read like the JDK's server reads it.
 *
 * @param path decoded
 * @param query raw, without its question mark, or null
 */
record RequestTarget(String path, @Nullable String query) {

  /**
   * Takes a request line's target apart.
   *
   * @throws URISyntaxException when it is none
   */
  static RequestTarget parse(String target) throws URISyntaxException {
    if (!isPlain(target)) {
      URI uri = new URI(target);
      if (uri.getRawFragment() != null) {
        throw new URISyntaxException(target, "a target has no fragment");
      }
      return new RequestTarget(uri.getPath() == null ? "" : uri.getPath(), uri.getRawQuery());
    }
    int question = target.indexOf('?');
    return question < 0
        ? new RequestTarget(target, null)
        : new RequestTarget(target.substring(0, question), target.substring(question + 1));
  }

  /** Whether it is a path with letters that mean themselves: all that the lab's clients send. */
  private static boolean isPlain(String target) {
    if (!target.startsWith("/") || target.startsWith("//")) {
      return false;
    }
    for (int i = 0; i < target.length(); i++) {
      char c = target.charAt(i);
      boolean plain =
          (c >= 'a' && c <= 'z')
              || (c >= 'A' && c <= 'Z')
              || (c >= '0' && c <= '9')
              || "/?&=-_.,".indexOf(c) >= 0;
      if (!plain) {
        return false;
      }
    }
    return true;
  }
}
