package lab.perconnection;

import static org.assertj.core.api.Assertions.assertThat;

import lab.conformance.ContractTest;
import lab.conformance.RawClient;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The contract, and what this server does about odd and half-closed clients. */
@Timeout(120)
class ThreadPerConnectionTest extends ContractTest {
  ThreadPerConnectionTest() {
    super(ThreadPerConnection.MODEL, "vt-connection-");
  }

  /** Each row's input ends with its half of the connection; {@code ~} is a line's end. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          GET /health HTTP/1.0~~GET /health HTTP/1.1~Host: a~~                              | 200 closed
          GET /health HTTP/1.0~Connection: keep-alive~~GET /none HTTP/1.1~Host: a~~         | 200 404 closed
          GET /health HTTP/1.1~Host: a~Transfer-Encoding: chunked~~x~                       | 400 closed
          GET /health HTTP/1.1~Host: a~Content-Length: 5~~hell                              | closed
          PUT / HTTP/1.1~Host: a~Expect: 100-continue~~                                     | 405 closed
          GET /health HTTP/1.1~Host: a~~NONSENSE~~GET /health HTTP/1.1~Host: a~~            | 200 400 closed
          """)
  void whatIsSentIsAnsweredInOrder(String sent, String answers) throws Exception {
    start();
    try (RawClient client = client()) {
      client.send(sent.replace("~", "\r\n"));
      client.endOutput();
      assertThat(client.rest()).isEqualTo(answers);
    }
  }

  @Test
  void aHeadAsLongAsAllowedAndALongBodyMayComeInAnyPieces() throws Exception {
    String head = "GET /health HTTP/1.1\r\nHost: lab\r\n";
    String filler = "Filler: " + "x".repeat(32_000) + "\r\n";
    String text = head + filler + "Content-Length: 100000\r\n\r\n" + "y".repeat(100_000);
    start();
    try (RawClient client = client()) {
      client.send(text + text);
      for (String each : (head + "Connection: close\r\n\r\n").split("", -1)) {
        client.send(each);
      }
      assertThat(client.rest()).isEqualTo("200 200 200 closed");
    }
  }
}
