package lab.wire;

import org.jspecify.annotations.Nullable;

/**
 * A request whose last byte has been read, without its body, for which no route has use.
 *
 * @param path decoded
 * @param query raw, without its question mark, or null
 * @param isHttp11 else it is HTTP/1.0
 * @param keepAlive whether the client wants the connection kept after this request
 */
public record Request(
    String method, String path, @Nullable String query, boolean isHttp11, boolean keepAlive) {
  /** False for HEAD. */
  public boolean answerHasBody() {
    return !method.equals("HEAD");
  }
}
