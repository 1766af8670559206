package lab.eventloop;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import lab.shell.ModelContext;
import lab.spec.DownstreamOutcome;
import lab.wire.HeaderFields;
import lab.work.DownstreamAddress;
import lab.work.DownstreamLimits;
import lab.work.nonblocking.DownstreamPool;

/** The downstream's connections on one loop's selector. */
final class SelectorPool extends DownstreamPool {
  private final Loop loop;

  // For its connections, which share them.
  final ByteBuffer request;
  final HeaderFields answerFields = new HeaderFields();

  SelectorPool(
      Loop loop, ModelContext context, DownstreamLimits limits, DownstreamAddress address) {
    super(context, loop, limits, address);
    this.loop = loop;
    byte[] bytes = address.request();
    this.request = ByteBuffer.allocateDirect(bytes.length).put(bytes);
  }

  @Override
  protected void connect(InetSocketAddress to, Call call) {
    DownstreamConnection connection;
    try {
      connection = DownstreamConnection.open(loop, this);
    } catch (IOException e) {
      call.failed(DownstreamOutcome.ERROR);
      return;
    }
    call.uses(connection);
    connection.connect(to, call);
  }
}
