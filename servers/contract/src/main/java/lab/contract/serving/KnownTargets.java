package lab.contract.serving;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicReferenceArray;
import lab.contract.RouteCall;
import lab.contract.Routes;
import lab.contract.http.MalformedException;

/**
 * What GETs of recent targets resolve to, so that the same text is not resolved again. Any number
 * of threads; they may forget each other's targets, never mistake one.
 */
public final class KnownTargets {
  @SuppressWarnings("ArrayRecordComponent") // Compared by hand.
  private record Known(byte[] target, RouteCall call) {}

  /** A power of two. */
  private static final int SLOTS = 64;

  private static final int MAX_KNOWN_BYTES = 128;

  private final AtomicReferenceArray<Known> slots = new AtomicReferenceArray<>(SLOTS);
  private final Routes routes;

  public KnownTargets(Routes routes) {
    this.routes = routes;
  }

  /**
   * Returns what a GET of this target resolves to.
   *
   * @throws MalformedException when it is no target
   */
  RouteCall get(byte[] bytes, int from, int to) throws MalformedException {
    int hash = 0;
    for (int i = from; i < to; i++) {
      hash = 31 * hash + bytes[i];
    }
    int slot = (hash ^ hash >>> 16) & SLOTS - 1;
    Known known = slots.get(slot);
    if (known != null && Arrays.equals(known.target, 0, known.target.length, bytes, from, to)) {
      return known.call;
    }
    RouteCall resolved = resolve("GET", bytes, from, to);
    if (to - from <= MAX_KNOWN_BYTES) {
      slots.set(slot, new Known(Arrays.copyOfRange(bytes, from, to), resolved));
    }
    return resolved;
  }

  RouteCall resolve(String method, byte[] bytes, int from, int to) throws MalformedException {
    URI uri = parse(new String(bytes, from, to - from, ISO_8859_1));
    return routes.resolve(method, uri.getPath(), uri.getRawQuery());
  }

  /**
   * Parses a target: a path, an absolute URI with a path, or {@code *} (RFC 9112, 3.2).
   *
   * @throws MalformedException when it is none of these
   */
  public static URI parse(String target) throws MalformedException {
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
