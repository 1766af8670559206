package lab.reactor;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntSupplier;
import lab.observe.RequestMetrics;
import lab.shell.ModelContext;
import lab.spec.RouteCall;
import lab.spec.Settings;
import lab.wire.Request;
import lab.work.Admission;
import lab.work.Answers;

/** A server's reactors, their threads, and what they share. */
public final class ReactorGroup {
  @FunctionalInterface
  public interface Factory<R extends Reactor> {
    R make(String name) throws IOException;
  }

  private static final Logger LOG = System.getLogger(ReactorGroup.class.getName());
  private static final int EXIT_BROKEN = 70;

  private final ModelContext context;
  final Settings settings;
  final RequestMetrics requests;
  final Answers answers;
  final Admission admission;
  private final Runnable onBroken;
  private final List<Reactor> reactors = new ArrayList<>();
  private final List<Thread> threads = new ArrayList<>();
  private IntSupplier mostAdmitted;
  private int port;

  /** Of a server that ends its process if one of its reactors cannot go on. */
  public ReactorGroup(ModelContext context) {
    this(context, ReactorGroup::endProcess);
  }

  public ReactorGroup(ModelContext context, Runnable onBroken) {
    this.context = context;
    this.settings = context.settings();
    this.requests = context.requests();
    this.answers = new Answers(context.model());
    this.admission = new Admission(settings.queueBound());
    this.mostAdmitted = admission::bound;
    this.onBroken = onBroken;
  }

  /** Binds, and makes the reactors. Starts no thread, so that nothing is left where it fails. */
  public <R extends Reactor> List<R> open(String prefix, int count, Factory<R> factory)
      throws IOException {
    ServerSocketChannel listener = ServerSocketChannel.open();
    try {
      listener.configureBlocking(false);
      listener.bind(new InetSocketAddress(settings.httpPort()), settings.backlog());
      port = listener.socket().getLocalPort();
      List<R> made = new ArrayList<>();
      for (int i = 1; i <= count; i++) {
        made.add(factory.make(prefix + i));
      }
      made.getFirst().listen(listener, made);
      reactors.addAll(made);
      return List.copyOf(made);
    } catch (Throwable e) {
      listener.close();
      throw e;
    }
  }

  /** Starts the threads, with a bound on requests taken on, asked for each; 0 = any number. */
  public void start(IntSupplier most) {
    mostAdmitted = most;
    RequestMetrics.registerConnections(context.registry(), this::openConnections);
    reactors.forEach(each -> threads.add(Thread.ofPlatform().name(each.name()).start(each)));
  }

  /** The same, bounded by {@code queue_bound}, a knob then. */
  public void start() {
    context.knobs().add(Settings.QUEUE_BOUND, admission::bound, admission::setBound);
    start(admission::bound);
  }

  public int port() {
    return port;
  }

  public void stop(Duration grace) {
    // Beyond the grace, for a reactor that is in the middle of something long.
    long end = System.nanoTime() + grace.plusSeconds(1).toNanos();
    reactors.forEach(each -> each.stop(grace));
    try {
      for (Thread thread : threads) {
        if (!thread.join(Duration.ofNanos(end - System.nanoTime()))) {
          LOG.log(Level.WARNING, "{0} does not end", thread.getName());
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  void broken() {
    onBroken.run();
  }

  /** On a thread of its own: the broken reactor is what the end of the process waits for. */
  public static void endProcess() {
    Thread.ofPlatform()
        .daemon()
        .name("end-process")
        .start(() -> Runtime.getRuntime().exit(EXIT_BROKEN));
  }

  // --- what they share; any thread -------------------------------------------------------------

  /** Takes one more request on, if there is a place for it. */
  boolean admits() {
    return admission.tryEnter(mostAdmitted.getAsInt());
  }

  RouteCall resolve(Request request) {
    return context.resolve(request.method(), request.path(), request.query());
  }

  private int openConnections() {
    int open = 0;
    for (Reactor each : reactors) {
      open += each.openConnections();
    }
    return open;
  }
}
