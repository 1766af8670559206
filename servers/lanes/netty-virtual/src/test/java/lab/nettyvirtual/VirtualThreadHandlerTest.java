package lab.nettyvirtual;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.net.Socket;
import java.util.List;
import java.util.Map;
import lab.netty.Exchange;
import lab.netty.Loop;
import lab.netty.NettyHttp;
import lab.netty.RequestHandler;
import lab.shell.LabServer;
import lab.shell.ModelContext;
import lab.spec.Route;
import lab.spec.Settings;
import org.junit.jupiter.api.Test;

class VirtualThreadHandlerTest {
  /** The server is stopping, and no bug. */
  @Test
  void aRequestAfterTheGraceIsClosedWithoutAnAnswer() throws Exception {
    Map<String, String> environment = Map.of("LAB_HTTP_PORT", "0", "LAB_MANAGEMENT_PORT", "0");
    try (LabServer server =
        LabServer.start(
            NettyHttp.model("test", Route.COMMON, VirtualThreadHandlerTest::closed),
            Settings.fromEnvironment(environment),
            () -> {})) {
      try (Socket late = new Socket(InetAddress.getLoopbackAddress(), server.httpPort())) {
        late.setSoTimeout(60_000);
        late.getOutputStream()
            .write("GET /health HTTP/1.1\r\nHost: lab\r\n\r\n".getBytes(US_ASCII));
        assertThat(late.getInputStream().readAllBytes()).isEmpty();
      }
    }
  }

  private static RequestHandler closed(ModelContext context, List<Loop> loops) {
    RequestHandler handler = new VirtualThreadHandler(context);
    handler.close();
    return new RequestHandler() {
      @Override
      public void handle(Exchange exchange) {
        handler.handle(exchange);
      }

      @Override
      public void close() {
        // It is.
      }
    };
  }
}
