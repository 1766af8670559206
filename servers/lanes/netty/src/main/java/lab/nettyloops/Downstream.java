package lab.nettyloops;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.prometheus.metrics.core.metrics.Counter;
import java.time.Duration;
import java.util.concurrent.Executor;
import lab.observe.DownstreamMetrics;
import lab.shell.ModelContext;
import lab.work.ConnectionCap;
import lab.work.DownstreamAddress;
import lab.work.DownstreamLimits;
import lab.work.DownstreamRequest;

/** What the loops' clients of the downstream have in common. Any thread. */
final class Downstream {
  private final DownstreamAddress address;
  private final ByteBuf request;
  private final DownstreamMetrics metrics;
  private final Counter retries;
  private final DownstreamLimits limits;

  /**
   * @param helpers threads that may block
   */
  Downstream(ModelContext context, Executor helpers) {
    DownstreamRequest get = DownstreamRequest.get(context.settings().downstreamUrl());
    address = new DownstreamAddress(get.host(), get.port(), helpers);
    // Direct, as the socket wants it: encoded once, written by every call.
    request =
        Unpooled.unreleasableBuffer(
            Unpooled.directBuffer(get.bytes().length).writeBytes(get.bytes()).asReadOnly());
    metrics = context.downstream();
    retries = metrics.retries();
    limits = DownstreamLimits.publish(context);
  }

  DownstreamAddress address() {
    return address;
  }

  /** The request's bytes, to be written once. */
  ByteBuf request() {
    return request.duplicate();
  }

  DownstreamMetrics metrics() {
    return metrics;
  }

  Counter retries() {
    return retries;
  }

  ConnectionCap cap() {
    return limits.cap();
  }

  /** The time that a call that begins now may take. */
  long timeoutNanos() {
    return limits.timeoutNanos();
  }

  /** How long a connection may idle. */
  Duration keepIdle() {
    return limits.keepIdle();
  }
}
