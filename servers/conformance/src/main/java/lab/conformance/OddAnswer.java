package lab.conformance;

import java.util.Arrays;

/** Answers of a downstream that few of them give, by the sections of RFC 9110 and 9112. */
enum OddAnswer {
  /** RFC 9110 15.2: informational answers come before the answer, and are none. */
  EARLY_HINTS(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
          + ok(FakeDownstream.BODY),
      "200"),

  /** So many of them are no hints. */
  ENDLESS_HINTS("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(200) + ok(FakeDownstream.BODY), "502"),

  /** RFC 9110 15.2.2: nobody asked for another protocol. */
  SWITCHING_PROTOCOLS("HTTP/1.1 101 Switching Protocols\r\nUpgrade: lab\r\n\r\n", "502"),

  /** RFC 9110 15.3.5: it is no 200, and has no body. */
  NO_CONTENT("HTTP/1.1 204 No Content\r\n\r\n", "502"),

  /** RFC 9112 6.3: the length is that of a body that does not come. */
  NOT_MODIFIED("HTTP/1.1 304 Not Modified\r\nContent-Length: 30\r\n\r\n", "502"),

  /** 2.3: a client may take the old protocol, or refuse it. */
  OLD_PROTOCOL(ok(FakeDownstream.BODY).replace("HTTP/1.1", "HTTP/1.0"), "502", "200"),

  /** 2.3: a version that nobody asked for. */
  NEW_PROTOCOL(ok(FakeDownstream.BODY).replace("HTTP/1.1", "HTTP/2.0"), "502"),

  /** 4: the reason may be empty. */
  NO_REASON(ok(FakeDownstream.BODY).replace("200 OK", "200 "), "200"),

  /** 4: a status has three digits. */
  STATUS_OF_FOUR_DIGITS(ok(FakeDownstream.BODY).replace("200 OK", "2000 OK"), "502"),

  /** 4: not two, either. */
  STATUS_OF_TWO_DIGITS(ok(FakeDownstream.BODY).replace("200 OK", "20 OK"), "502"),

  /** What would not fit into a server's memory, were there many. */
  LONG_BODY(ok(FakeDownstream.LONG_BODY + "!"), "502"),

  /** 6.3: what nobody asked for is no part of this answer, nor of the next. */
  SURPLUS_BYTES(ok(FakeDownstream.BODY) + "surplus", "200"),

  /** 6.3: even if it looks like the next. */
  SURPLUS_ANSWER(ok(FakeDownstream.BODY) + ok("{\"service\":\"another\"}"), "200");

  private final String answer;

  @SuppressWarnings("ImmutableEnumChecker") // Never changed.
  private final String[] statuses;

  OddAnswer(String answer, String... statuses) {
    this.answer = answer;
    this.statuses = statuses;
  }

  /** What the downstream writes. */
  String answer() {
    return answer;
  }

  /** What its caller may make of it; the call after it succeeds in any case. */
  String[] allowed() {
    return Arrays.stream(statuses).map(status -> status + ", then 200").toArray(String[]::new);
  }

  private static String ok(String body) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + body.length() + "\r\n\r\n" + body;
  }
}
