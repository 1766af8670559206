package lab.work.blocking;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.function.Supplier;
import lab.observe.VirtualThreadLag;
import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.spec.Bodies;
import lab.spec.Route;
import lab.spec.RouteCall;
import lab.spec.Settings;
import lab.work.faults.OneLock;
import lab.work.faults.Pin;

/** Does the routes' work on the calling thread, which may be of any kind. */
public final class BlockingRoutes implements AutoCloseable {
  private static final Logger LOG = System.getLogger(BlockingRoutes.class.getName());

  private final ModelContext context;
  private final Answer up;
  private final BlockingDownstream downstream;
  private final Demonstrations demonstrations;
  private final OneLock lock;
  private final Pin pin;
  private final VirtualThreadLag lag;

  /** With the lab's own client of the downstream. */
  public BlockingRoutes(ModelContext context) {
    this(context, new SocketClient(context));
  }

  /** With a framework's client, closed with the routes, or with the lab's, as the settings say. */
  public static BlockingRoutes ofFramework(
      ModelContext context, Supplier<DownstreamClient> client) {
    context.knobs().has(Settings.DOWNSTREAM_CLIENT);
    return new BlockingRoutes(
        context, context.settings().labClient() ? new SocketClient(context) : client.get());
  }

  private BlockingRoutes(ModelContext context, DownstreamClient client) {
    this.context = context;
    this.up = Bodies.up(context.model());
    this.downstream = new BlockingDownstream(context, client);
    this.demonstrations = Demonstrations.of(context);
    this.lock = new OneLock(context.knobs());
    this.pin = new Pin(context.knobs());
    this.lag = new VirtualThreadLag(context.registry());
  }

  /**
   * Returns the answer, however long it takes; 500 if the work throws. Any number of threads at a
   * time; one that is interrupted loses its request.
   */
  public Answer answer(RouteCall call) throws InterruptedException {
    Answer refusal = call.refusal();
    try {
      lag.of(Thread.currentThread());
      return refusal != null ? refusal : work(call);
    } catch (RuntimeException | Error e) {
      LOG.log(Level.ERROR, "a bug: " + call.route().path() + " failed", e);
      return Answer.INTERNAL_ERROR;
    }
  }

  @Override
  public void close() {
    lag.close();
    downstream.close();
  }

  private Answer work(RouteCall call) throws InterruptedException {
    if (call.route() != Route.HEALTH) {
      lock.hold();
      pin.hold();
    }
    return switch (call.route()) {
      case ROOT -> hello(call.value("wait_ms"));
      case DOWNSTREAM -> downstream.call();
      case SYNCHRONIZED -> downstreamSynchronized();
      case HEALTH -> up;
      case COMPUTE -> Bodies.compute(call.value("limit"));
      case BLOCK -> block(call.value("wait_ms"));
      case FILE -> Bodies.file(context.file().read(call.value("lines")));
      case AGGREGATE, AGGREGATE_OLD, FIRST_SUCCESS, AGGREGATE_WITH_FALLBACK, MULTI_AGGREGATE ->
          demonstrations.answer(call);
      case METRICS -> Bodies.metrics(context.exposition().get());
      case NONE -> throw new IllegalStateException("no route, but no refusal");
    };
  }

  private Answer hello(int waitMs) throws InterruptedException {
    Thread.sleep(waitMs);
    return Bodies.hello(context.model(), Thread.currentThread().getName());
  }

  /** On its own thread's monitor: the JIT compiler would take away that of a private object. */
  private Answer downstreamSynchronized() throws InterruptedException {
    synchronized (Thread.currentThread()) {
      return downstream.call();
    }
  }

  private static Answer block(int waitMs) throws InterruptedException {
    Thread.sleep(waitMs);
    return Bodies.block(waitMs);
  }
}
