package lab.wire;

import java.net.URI;
import java.net.URISyntaxException;
import org.jspecify.annotations.Nullable;

/** What a request asks for: the decoded path, and the raw query without its question mark. */
public record RequestTarget(String path, @Nullable String query) {
  /** Parses a path, an absolute URI with a path, or {@code *}, and nothing else (RFC 9112, 3.2). */
  public static RequestTarget parse(String target) throws MalformedException {
    if (!isPlain(target)) {
      URI uri = uri(target);
      return new RequestTarget(uri.getPath(), uri.getRawQuery());
    }
    int question = target.indexOf('?');
    return question < 0
        ? new RequestTarget(target, null)
        : new RequestTarget(target.substring(0, question), target.substring(question + 1));
  }

  /** True if it is a path with letters that mean themselves: the URI would be the same text. */
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

  private static URI uri(String target) throws MalformedException {
    try {
      URI uri = new URI(target);
      boolean isPath = target.startsWith("/") || target.equals("*");
      if (uri.getPath() == null || !(isPath || uri.isAbsolute())) {
        throw new MalformedException("no path");
      }
      if (uri.getRawFragment() != null) {
        throw new MalformedException("a target has no fragment");
      }
      return uri;
    } catch (URISyntaxException e) {
      throw new MalformedException("no target");
    }
  }
}
