package lab.contract.test;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.util.Map;
import java.util.TreeMap;

/** One connection, spoken to byte by byte. */
final class RawClient implements AutoCloseable {
  /** What only a broken server exceeds. */
  private static final int READ_TIMEOUT_MS = 60_000;

  /**
   * An answer as it came.
   *
   * @param headers by name, in any case
   */
  record RawAnswer(int status, Map<String, String> headers, String body) {}

  private final Socket socket;
  private final InputStream in;

  RawClient(int port) throws IOException {
    socket = new Socket(InetAddress.getLoopbackAddress(), port);
    socket.setSoTimeout(READ_TIMEOUT_MS);
    in = new BufferedInputStream(socket.getInputStream());
  }

  /** Sends a request without a body. */
  RawClient request(String method, String target, String... headers) throws IOException {
    StringBuilder text =
        new StringBuilder("%s %s HTTP/1.1\r\nHost: lab\r\n".formatted(method, target));
    for (String header : headers) {
      text.append(header).append("\r\n");
    }
    return send(text.append("\r\n").toString());
  }

  RawClient send(String text) throws IOException {
    socket.getOutputStream().write(text.getBytes(UTF_8));
    return this;
  }

  RawAnswer get(String target) throws IOException {
    return request("GET", target).read("GET");
  }

  RawAnswer read() throws IOException {
    return read("GET");
  }

  /** Reads the next answer; one to HEAD has no body whatever its headers say. */
  RawAnswer read(String method) throws IOException {
    String[] statusLine = line().split(" ", 3);
    Map<String, String> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    for (String line = line(); !line.isEmpty(); line = line()) {
      int colon = line.indexOf(':');
      headers.put(line.substring(0, colon), line.substring(colon + 1).strip());
    }
    int length =
        method.equals("HEAD") ? 0 : Integer.parseInt(headers.getOrDefault("Content-Length", "0"));
    byte[] body = in.readNBytes(length);
    if (body.length < length) {
      throw new EOFException("closed within the body");
    }
    return new RawAnswer(Integer.parseInt(statusLine[1]), headers, new String(body, UTF_8));
  }

  /** Waits for the server's close; false when there is more to read. */
  boolean isClosedByServer() throws IOException {
    return in.read() < 0;
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }

  private String line() throws IOException {
    ByteArrayOutputStream line = new ByteArrayOutputStream();
    for (int next = in.read(); next != '\n'; next = in.read()) {
      if (next < 0) {
        throw new EOFException("closed by the server");
      }
      line.write(next);
    }
    return line.toString(UTF_8).stripTrailing();
  }
}
