package lab.conformance;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.stream.Collectors.joining;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** A client of one connection, byte by byte. */
public final class RawClient implements AutoCloseable {
  /** What only a broken server exceeds. */
  private static final int TIMEOUT_MS = 60_000;

  /** An answer as it came; its headers by name, in any case. */
  public record RawAnswer(int status, Map<String, String> headers, String body) {}

  private final Socket socket;
  private final InputStream in;

  private boolean isHead;

  RawClient(int port) throws IOException {
    this(port, 0);
  }

  /** The kernel keeps so many bytes unread, 0 = as many as it likes. */
  RawClient(int port, int receiveBytes) throws IOException {
    socket = new Socket();
    if (receiveBytes > 0) {
      socket.setReceiveBufferSize(receiveBytes);
    }
    socket.setTcpNoDelay(true);
    socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), TIMEOUT_MS);
    socket.setSoTimeout(TIMEOUT_MS);
    in = new BufferedInputStream(socket.getInputStream());
  }

  /** Sends a request without a body. */
  public RawClient request(String method, String target, String... headers) throws IOException {
    String fields = Stream.of(headers).map(each -> each + "\r\n").collect(joining());
    return send("%s %s HTTP/1.1\r\nHost: lab\r\n%s\r\n".formatted(method, target, fields));
  }

  /** As {@link #send}, to a server that may have closed before it has read all of it. */
  RawClient trySend(String text) {
    var _ = isTaken(text);
    return this;
  }

  /** Sends; false when the connection has been closed. The first after that may still be taken. */
  boolean isTaken(String text) {
    try {
      var _ = send(text);
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  public RawClient send(String text) throws IOException {
    isHead = text.startsWith("HEAD ");
    socket.getOutputStream().write(text.getBytes(UTF_8));
    return this;
  }

  /** Sends it so many times, and reads nothing, unless the connection is closed. */
  Thread sendOften(int times, String text) {
    return Thread.startVirtualThread(
        () -> {
          var _ = IntStream.range(0, times).allMatch(_ -> isTaken(text));
        });
  }

  public RawAnswer get(String target) throws IOException {
    return request("GET", target).read();
  }

  /** Reads the next answer; one to HEAD has no body whatever its headers say. */
  public RawAnswer read() throws IOException {
    String[] statusLine = line().split(" ", 3);
    Map<String, String> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    for (String line = line(); !line.isEmpty(); line = line()) {
      int colon = line.indexOf(':');
      headers.put(line.substring(0, colon), line.substring(colon + 1).strip());
    }
    int length = isHead ? 0 : Integer.parseInt(headers.getOrDefault("Content-Length", "0"));
    boolean isChunked = headers.getOrDefault("Transfer-Encoding", "").equalsIgnoreCase("chunked");
    byte[] body = isChunked && !isHead ? readChunks() : readBytes(length);
    return new RawAnswer(Integer.parseInt(statusLine[1]), headers, new String(body, UTF_8));
  }

  private byte[] readChunks() throws IOException {
    ByteArrayOutputStream body = new ByteArrayOutputStream();
    int size;
    do {
      size = Integer.parseInt(line().split(";", 2)[0].strip(), 16);
      body.write(readBytes(size));
      if (size > 0 && !line().isEmpty()) {
        throw new IOException("a chunk is longer than it says");
      }
    } while (size > 0);
    while (!line().isEmpty()) {
      // Trailers mean nothing to it.
    }
    return body.toByteArray();
  }

  private byte[] readBytes(int count) throws IOException {
    byte[] bytes = in.readNBytes(count);
    if (bytes.length < count) {
      throw new EOFException("closed within the body");
    }
    return bytes;
  }

  /** Says that nothing more will come; the server's answers may still. */
  public void endOutput() throws IOException {
    socket.shutdownOutput();
  }

  /** Leaves without a word: what is under way meets a reset. */
  void reset() throws IOException {
    socket.setOption(StandardSocketOptions.SO_LINGER, 0);
    socket.close();
  }

  /** Reads the next answer and returns its status, or {@code closed} when there is none. */
  String next() throws IOException {
    try {
      return String.valueOf(read().status());
    } catch (EOFException | SocketException e) {
      return "closed";
    }
  }

  /**
   * Reads up to the server's end of the connection and returns each status, then how it ended, as
   * {@code 200 405 closed}. A reset counts as closed; an answer without its end is {@code cut}.
   */
  public String rest() throws IOException {
    StringBuilder seen = new StringBuilder();
    try {
      for (in.mark(1); in.read() >= 0; in.mark(1)) {
        in.reset();
        seen.append(read().status()).append(' ');
      }
    } catch (EOFException e) {
      seen.append("cut ");
    } catch (SocketTimeoutException e) {
      throw new IOException("silent, after " + seen, e);
    } catch (SocketException e) {
      // Reset: what was read before counts.
    }
    return seen.append("closed").toString();
  }

  /** Reads up to the server's end of the connection and returns what came, as it is. */
  public String text() throws IOException {
    return new String(in.readAllBytes(), ISO_8859_1);
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
