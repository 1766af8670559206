package lab.netty;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.channel.socket.SocketChannel;
import io.netty.handler.codec.TooLongFrameException;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.DefaultHttpHeadersFactory;
import io.netty.handler.codec.http.EmptyHttpHeaders;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseEncoder;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.util.AsciiString;
import io.netty.util.ReferenceCountUtil;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.Queue;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.Outcome;
import lab.spec.RouteCall;
import lab.wire.HttpBytes;
import lab.wire.MalformedException;
import lab.wire.RequestTarget;
import org.jspecify.annotations.Nullable;

/**
 * A client's connection: one request at a time. What one read brings beyond it waits for its turn,
 * and the rest is not read, so that a client that does not read holds one answer in memory.
 *
 * <pre>
 *          first byte               whole request             answer
 *   IDLE ------------&gt; RECEIVING ----------------&gt; WORKING ---------&gt; WRITING
 *    ^                     '--------- 400, 431 ---------------------&gt;   |  |
 *    '------------------------- all written ---------------------------'  | closes
 *                                                                         v
 *   closed &lt;--EOF, 1-2 s, 1 MiB-- LINGERING &lt;------ more has come --------'
 * </pre>
 *
 * <p>LINGERING reads on after the last answer, as closing with unread input would reset the
 * connection and take the answer from the client. The loop's thread only, except {@link #close}.
 */
final class Connection extends ChannelInboundHandlerAdapter {
  private enum State {
    IDLE,
    RECEIVING,
    WORKING,
    WRITING,
    LINGERING
  }

  private static final Logger LOG = System.getLogger(Connection.class.getName());

  /** The first sweep after it ends it. */
  private static final long LINGER_NANOS = 1_000_000_000;

  private static final int LINGER_BYTES = 1 << 20;

  private static final Answer MALFORMED = Answer.error(400, "malformed request");
  private static final Answer TOO_LARGE = Answer.error(431, "request line or headers too large");
  private static final AsciiString MODEL_HEADER = AsciiString.cached(ModelContext.MODEL_HEADER);
  private static final AsciiString JSON = AsciiString.cached(Answer.JSON);

  /** What is set here is the lab's own and needs no check. */
  private static final DefaultHttpHeadersFactory HEADERS =
      DefaultHttpHeadersFactory.headersFactory().withValidation(false);

  private final NettyHttp server;
  private final SocketChannel channel;
  private final Loop loop;
  private final RequestDecoder decoder = new RequestDecoder();
  private State state = State.IDLE;

  /** The request whose body, which means nothing to the lab, is still coming. */
  private @Nullable HttpRequest head;

  /** What was read while a request was in work, in parts; null until a client pipelines. */
  private @Nullable Queue<Object> pipelined;

  // Of the request in work.
  private boolean keepAlive;
  private boolean isHttp10;
  private boolean isHead;

  private boolean isResuming;
  private boolean hasRefused;
  private boolean inputEnded;
  private int lingerBytes;

  /** Since when it is the client's turn. */
  private long quietSinceNanos = System.nanoTime();

  private Connection(NettyHttp server, SocketChannel channel) {
    this.server = server;
    this.channel = channel;
    this.loop = (Loop) channel.eventLoop();
  }

  static void serve(NettyHttp server, SocketChannel channel) {
    Connection connection = new Connection(server, channel);
    var _ = channel.pipeline().addLast(connection.decoder, new HttpResponseEncoder(), connection);
  }

  Loop loop() {
    return loop;
  }

  /** Any thread. */
  void close() {
    var _ = channel.close();
  }

  @Override
  public void channelActive(ChannelHandlerContext ctx) {
    var _ = server.connections.add(channel);
    if (server.isStopping()) {
      close();
    }
  }

  @Override
  public void channelInactive(ChannelHandlerContext ctx) {
    dropPipelined();
  }

  @Override
  public void channelRead(ChannelHandlerContext ctx, Object part) {
    loop.probe().returned();
    if (state == State.WORKING || state == State.WRITING) {
      if (pipelined == null) {
        pipelined = new ArrayDeque<>();
      }
      pipelined.add(part);
      var _ = channel.config().setAutoRead(false);
    } else {
      receive(part);
    }
  }

  @Override
  public void channelReadComplete(ChannelHandlerContext ctx) {
    if (state == State.IDLE && decoder.hasInput()) {
      // From its first byte on a request has its time once, however slowly it comes.
      state = State.RECEIVING;
      quietSinceNanos = loop.probe().selectedNanos();
    }
  }

  @Override
  public void userEventTriggered(ChannelHandlerContext ctx, Object event) {
    if (event == ChannelInputShutdownEvent.INSTANCE) {
      // Half closed: the client may still want its answers.
      inputEnded = true;
    }
    boolean closes =
        switch (state) {
          case IDLE, RECEIVING ->
              inputEnded || event == NettyHttp.Event.STOP || isQuietFor(server.timeoutNanos);
          case WORKING -> false;
          case WRITING -> isQuietFor(server.timeoutNanos);
          case LINGERING -> inputEnded || isQuietFor(LINGER_NANOS);
        };
    if (closes) {
      close();
    }
  }

  @Override
  public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
    if (cause instanceof IOException) {
      LOG.log(Level.DEBUG, "the client broke the connection", cause);
    } else {
      LOG.log(Level.ERROR, "a bug: a connection failed", cause);
    }
    close();
  }

  private boolean isQuietFor(long nanos) {
    return System.nanoTime() - quietSinceNanos > nanos;
  }

  private boolean isListening() {
    return state == State.IDLE || state == State.RECEIVING;
  }

  /** Takes a part of a request whose turn it is, and releases it. */
  private void receive(Object part) {
    try {
      if (state == State.LINGERING) {
        linger(part);
      } else if (part instanceof HttpObject object && object.decoderResult().isFailure()) {
        refuse(object.decoderResult().cause());
      } else if (part instanceof HttpRequest request) {
        receiveHead(request);
      } else if (part instanceof LastHttpContent && head != null) {
        HttpRequest request = head;
        head = null;
        begin(request);
      }
    } finally {
      var _ = ReferenceCountUtil.release(part);
    }
  }

  private void receiveHead(HttpRequest request) {
    if (!hasHost(request)) {
      refuse(new MalformedException("not one Host"));
      return;
    }
    head = request;
    if (HttpUtil.is100ContinueExpected(request)) {
      var _ = channel.writeAndFlush(response(HttpResponseStatus.CONTINUE, Unpooled.EMPTY_BUFFER));
    }
  }

  /** True if there is one Host, or in HTTP/1.0 at most one, and it is a host. */
  private static boolean hasHost(HttpRequest request) {
    Iterator<? extends CharSequence> hosts =
        request.headers().valueCharSequenceIterator(HttpHeaderNames.HOST);
    if (!hosts.hasNext()) {
      return request.protocolVersion().equals(HttpVersion.HTTP_1_0);
    }
    byte[] host = hosts.next().toString().getBytes(ISO_8859_1);
    return !hosts.hasNext() && HttpBytes.isHost(host, 0, host.length);
  }

  private void begin(HttpRequest request) {
    RequestTarget target;
    try {
      target = RequestTarget.parse(request.uri());
    } catch (MalformedException e) {
      refuse(e);
      return;
    }
    keepAlive = HttpUtil.isKeepAlive(request);
    isHttp10 = request.protocolVersion().equals(HttpVersion.HTTP_1_0);
    isHead = request.method().equals(HttpMethod.HEAD);
    RouteCall call = server.routes.resolve(request.method().name(), target.path(), target.query());
    state = State.WORKING;
    new Exchange(server, this, call, receivedNanos()).handle();
  }

  /** Since when a request has been there, about: Netty reads again in a turn that has answered. */
  private long receivedNanos() {
    boolean answered = quietSinceNanos - loop.probe().selectedNanos() > 0;
    return answered ? quietSinceNanos : loop.probe().readyNanos();
  }

  /** Answers what is no request, and reads no further. */
  private void refuse(Throwable reason) {
    server.metrics.malformed();
    hasRefused = true;
    head = null;
    boolean tooLong = reason instanceof TooLongFrameException;
    Answer answer = tooLong ? TOO_LARGE : MALFORMED;
    write(response(answer, false), null, answer.outcome(), true);
  }

  void write(Exchange exchange, Answer answer) {
    boolean closes = !keepAlive || server.isStopping();
    FullHttpResponse response = response(answer, isHead);
    if (!closes && isHttp10) {
      response.headers().add(HttpHeaderNames.CONNECTION, HttpHeaderValues.KEEP_ALIVE);
    }
    write(response, exchange, answer.outcome(), closes);
  }

  private void write(
      FullHttpResponse response, @Nullable Exchange exchange, Outcome outcome, boolean closes) {
    if (closes) {
      response.headers().add(HttpHeaderNames.CONNECTION, HttpHeaderValues.CLOSE);
    }
    ChannelFuture writing = channel.writeAndFlush(response);
    state = State.WRITING;
    quietSinceNanos = System.nanoTime();
    if (writing.isDone()) {
      written(exchange, writing.isSuccess() ? outcome : Outcome.ABORTED, closes);
    } else {
      var _ =
          writing.addListener(
              _ -> {
                quietSinceNanos = System.nanoTime();
                written(exchange, writing.isSuccess() ? outcome : Outcome.ABORTED, closes);
              });
    }
  }

  private void written(@Nullable Exchange exchange, Outcome outcome, boolean closes) {
    if (exchange != null) {
      exchange.end(outcome);
    }
    if (closes || outcome == Outcome.ABORTED || !channel.isActive()) {
      closeGently();
    } else {
      state = State.IDLE;
      resume();
    }
  }

  /** Goes on with what came meanwhile. */
  private void resume() {
    if (isResuming) {
      // The loop below goes on: a read may bring a thousand requests, too many for one stack.
      return;
    }
    isResuming = true;
    try {
      for (Object part = nextPipelined(); part != null; part = nextPipelined()) {
        receive(part);
      }
    } finally {
      isResuming = false;
    }
    if (isListening() && (inputEnded || server.isStopping())) {
      close();
    } else if (isListening() && pipelined != null) {
      pipelined = null;
      var _ = channel.config().setAutoRead(true);
    }
  }

  private @Nullable Object nextPipelined() {
    return isListening() && pipelined != null ? pipelined.poll() : null;
  }

  private void dropPipelined() {
    if (pipelined != null) {
      pipelined.forEach(ReferenceCountUtil::release);
      pipelined = null;
    }
  }

  /** True if the client has sent more than the requests up to this one, as far as it is known. */
  private boolean hasMore() {
    return hasRefused || (pipelined != null && !pipelined.isEmpty()) || decoder.hasInput();
  }

  /** Closes it, as soon as its client has had the chance to read its last answer. */
  private void closeGently() {
    boolean lingers = hasMore() && !inputEnded && channel.isActive();
    state = State.LINGERING;
    dropPipelined();
    if (lingers) {
      lingerBytes = LINGER_BYTES;
      var _ = channel.pipeline().remove(decoder);
      var _ = channel.shutdownOutput();
      var _ = channel.config().setAutoRead(true);
    } else {
      close();
    }
  }

  private void linger(Object part) {
    if (part instanceof ByteBuf bytes) {
      lingerBytes -= bytes.readableBytes();
      if (lingerBytes < 0) {
        close();
      }
    }
  }

  private FullHttpResponse response(Answer answer, boolean headOnly) {
    FullHttpResponse response =
        response(
            HttpResponseStatus.valueOf(answer.status()),
            headOnly ? Unpooled.EMPTY_BUFFER : Unpooled.wrappedBuffer(answer.body()));
    boolean isJson = answer.contentType().equals(Answer.JSON);
    HttpHeaders headers = response.headers();
    headers.add(HttpHeaderNames.CONTENT_TYPE, isJson ? JSON : answer.contentType());
    headers.add(HttpHeaderNames.CONTENT_LENGTH, Integer.toString(answer.body().length));
    headers.add(MODEL_HEADER, server.modelHeader);
    headers.add(HttpHeaderNames.DATE, server.date.now());
    if (answer.status() == 405) {
      headers.add(HttpHeaderNames.ALLOW, "GET");
    }
    return response;
  }

  private static FullHttpResponse response(HttpResponseStatus status, ByteBuf body) {
    return new DefaultFullHttpResponse(
        HttpVersion.HTTP_1_1, status, body, HEADERS.newHeaders(), EmptyHttpHeaders.INSTANCE);
  }
}
