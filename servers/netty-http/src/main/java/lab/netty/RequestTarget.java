package lab.netty;

import java.net.URI;
import lab.contract.http.MalformedException;
import lab.contract.serving.KnownTargets;
import org.jspecify.annotations.Nullable;

/**
 * What a request asks for.
 *
 * @param path decoded
 * @param query raw, without its question mark, or null
 */
record RequestTarget(String path, @Nullable String query) {

  /**
   * Takes a request line's target apart.
   *
   * @throws MalformedException when it is none
   */
  static RequestTarget parse(String target) throws MalformedException {
    if (!isPlain(target)) {
      URI uri = KnownTargets.parse(target);
      return new RequestTarget(uri.getPath(), uri.getRawQuery());
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
