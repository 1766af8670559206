package lab.conformance;

import java.util.Random;
import java.util.Set;
import java.util.function.Function;

/** Kinds of requests that are none, by the sections of RFC 9112, each made at random. */
enum Malformed {
  /** 2.2: a CR that no LF follows. */
  BARE_CR(random -> head("GET /health HTTP/1.1", word(random) + ": a\r" + word(random))),

  /** 2.2: a blank between the request line and the first field. */
  BLANK_BEFORE_FIELDS(
      random ->
          "GET /health HTTP/1.1\r\n%s%s: a\r\nHost: lab\r\nConnection: close\r\n\r\n"
              .formatted(any(random, " ", "\t", "  "), word(random))),

  /** 2.3: a version that there is not. */
  VERSION(
      random ->
          head(
              "GET /health "
                  + any(
                      random, "HTTP/1", "HTTP/1.10", "HTTP/a.b", "http/1.1", "HTTP 1.1", "HTTP/11")
                  + any(random, "", "x"))),

  /**
   * 3: too few or too many parts. A line without a version is another test's: that was HTTP/0.9.
   */
  REQUEST_LINE(
      random ->
          head(
              any(
                  random,
                  word(random),
                  "GET /health HTTP/1.1 " + word(random),
                  " /health HTTP/1.1",
                  "GET " + word(random) + " /health HTTP/1.1"))),

  /** 3.1: a method with a letter that a name must not have. */
  METHOD(
      random ->
          head("G"
                      + any(random, "(", ")", "<", "@", ",", ";", "/", "[", "=", "{", "\"", "\1")
                      + word(random)
                      + " /health HTTP/1.1")
                  .replace("Connection: close\r\n", "")
              // Who goes on after it answers this one, too.
              + head("GET /health HTTP/1.1")),

  /** 3.2: a target with a letter that it must not have, or in none of its four forms. */
  TARGET(
      random ->
          head(
              "GET "
                  + any(
                      random,
                      "/health" + any(random, "<", ">", "\"", "{", "}", "|", "^", "`", "#a", "%zz"),
                      "/health?" + any(random, "<", ">", "\"", "#", "%g1"),
                      word(random),
                      "\\" + word(random))
                  + " HTTP/1.1")),

  /** 3.2: no Host, two, or none that names a host. */
  HOST(
      random ->
          "GET /health HTTP/1.1\r\nConnection: close\r\n%s\r\n"
              .formatted(
                  any(
                      random,
                      "",
                      word(random) + ": a\r\n",
                      "Host: lab\r\nHost: lab\r\n",
                      "Host: lab\r\nHost: " + word(random) + "\r\n",
                      "Host: lab " + word(random) + "\r\n",
                      "Host: lab/" + word(random) + "\r\n",
                      "Host: " + word(random) + "@lab\r\n",
                      "Host: lab:" + word(random) + "\r\n"))),

  /** 5, RFC 9110 5.1: a field without a name, or with one that is no name. */
  FIELD_NAME(
      random ->
          head(
              "GET /health HTTP/1.1",
              any(
                  random,
                  ": " + word(random),
                  word(random),
                  word(random) + any(random, "(", ")", "<", "@", "/", "[", "=", "{", "\"") + "x: a",
                  word(random) + " " + word(random) + ": a"))),

  /** 5.1: a blank between a field's name and its colon. */
  BLANK_BEFORE_COLON(
      random ->
          head(
              "GET /health HTTP/1.1",
              any(random, "Content-Length", "Host", word(random))
                  + any(random, " ", "\t")
                  + ": "
                  + any(random, "0", "a"))),

  /** 5, RFC 9110 5.5: a NUL in a field's value. */
  NUL(random -> head("GET /health HTTP/1.1", word(random) + ": a\0" + word(random))),

  /** 5.2: a field that goes on in the next line: to be refused, or read as a blank. */
  FOLDED(random -> head("GET /health HTTP/1.1", word(random) + ": a\r\n " + word(random))),

  /** 6.1: a length beside chunks, by which requests are smuggled. */
  LENGTH_AND_CHUNKS(
      random -> {
        String length = "Content-Length: " + random.nextInt(9);
        String chunked = "Transfer-Encoding: chunked";
        boolean first = random.nextBoolean();
        return head("GET /health HTTP/1.1", first ? length : chunked, first ? chunked : length)
            + "0\r\n\r\n";
      }),

  /** 6.1: codings after which nobody knows where the body ends, or of a version without any. */
  CODING(
      random -> {
        String of =
            any(random, "identity", word(random), "chunked, gzip", "chunked, chunked", "chunkedx");
        return any(
                random,
                head("GET /health HTTP/1.1", "Transfer-Encoding: " + of),
                head(
                    "GET /health HTTP/1.1",
                    "Transfer-Encoding: chunked",
                    "Transfer-Encoding: " + of),
                head("GET /health HTTP/1.0", "Transfer-Encoding: chunked"))
            + "0\r\n\r\n";
      }),

  /** 6.3: a length that is no number, or two that differ. */
  LENGTH(
      random ->
          head(
                  "GET /health HTTP/1.1",
                  "Content-Length: "
                      + any(
                          random,
                          "-" + (1 + random.nextInt(9)),
                          "+5",
                          "0x5",
                          "5,6",
                          "5 5",
                          "5e0",
                          word(random),
                          "99999999999999999999",
                          "5\r\nContent-Length: 6"))
              + "hello!"),

  /** 7.1: a chunk's size that is no number, or one beyond any. */
  CHUNK_SIZE(
      random ->
          head("GET /health HTTP/1.1", "Transfer-Encoding: chunked")
              + any(random, "g", "-1", "0x1", "", "1" + any(random, "g", "-", "."), "f".repeat(17))
              + "\r\na\r\n0\r\n\r\n"),

  /** 7.1: a chunk longer than it says. */
  CHUNK_DATA(
      random ->
          head("GET /health HTTP/1.1", "Transfer-Encoding: chunked")
              + "1\r\na"
              + word(random)
              + "\r\n0\r\n\r\n"),

  /** 8: a head that ends in the middle, and with it all that the client sends. */
  INCOMPLETE(
      random -> {
        String whole = head("GET /health HTTP/1.1", word(random) + ": a");
        return whole.substring(0, 1 + random.nextInt(whole.length() - 3));
      });

  @SuppressWarnings("ImmutableEnumChecker") // None of the functions has a state.
  private final Function<Random, String> maker;

  Malformed(Function<Random, String> maker) {
    this.maker = maker;
  }

  String next(Random random) {
    return maker.apply(random);
  }

  /** How a server may refuse it. To close and say nothing is allowed of all. */
  Set<String> refusals() {
    return switch (this) {
      case VERSION, CODING -> Set.of("closed", "400 closed", "501 closed", "505 closed");
      default -> Set.of("closed", "400 closed");
    };
  }

  /** A request that would end its connection, were it whole: so nobody waits for what is not. */
  private static String head(String requestLine, String... fields) {
    StringBuilder head =
        new StringBuilder(requestLine).append("\r\nHost: lab\r\nConnection: close\r\n");
    for (String field : fields) {
      head.append(field).append("\r\n");
    }
    return head.append("\r\n").toString();
  }

  private static String word(Random random) {
    StringBuilder word = new StringBuilder("X");
    for (int length = 1 + random.nextInt(12); length > 0; length--) {
      word.append((char) ('a' + random.nextInt(26)));
    }
    return word.toString();
  }

  private static String any(Random random, String... of) {
    return of[random.nextInt(of.length)];
  }
}
