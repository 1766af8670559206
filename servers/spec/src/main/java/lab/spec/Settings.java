package lab.spec;

import java.net.URI;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What a server is started with: the same for every model, read once from the environment.
 *
 * @param httpPort traffic port; 0 takes a free one
 * @param managementPort management port; 0 takes a free one
 * @param backlog length of the accept queue asked of the kernel (it caps it at somaxconn)
 * @param tcpNodelay whether answers are sent without waiting for the client's ACK
 * @param keepAliveMaxIdle idle client connections kept open; one more is closed after its answer,
 *     but for a framework's server, which has no such limit: {@code keepsAllIdleClients}
 * @param keepAliveTimeout how long a client connection may idle
 * @param poolSize worker threads, for models with a worker pool
 * @param poolOrder which idle worker a pool gives the next request to
 * @param connectionThreads the kind of thread that each connection has, for models with such
 * @param nettyTransport how the loops of models on Netty read and write
 * @param queueBound requests that may wait for a worker, 0 = unbounded; beyond it the answer is 503
 * @param loops event loops, each one thread, for models with event loops; 0 = as many as the model
 *     has by itself, see {@link #loops(int)}
 * @param fronts threads that read requests and hand them to others, for models that have them
 * @param blockTheLoop whether waits block the loop's thread, and how
 * @param downstreamUrl where {@code /downstream} calls
 * @param downstreamConnections most downstream calls at a time; further ones wait
 * @param downstreamTimeout deadline of a downstream call, waiting for a connection included
 * @param downstreamKeepIdle how long a connection to the downstream may idle before it is closed;
 *     less than the downstream keeps it
 * @param frameworkDefaults whose defaults a framework's server has: those of the lab, which are the
 *     limits of the models without a framework, or those that the framework ships with
 * @param downstreamClient whose client a framework's server that blocks calls the downstream with
 * @param tokenSums by which the management port knows its token: of no matter for what is measured,
 *     so it is in no answer
 */
public record Settings(
    int httpPort,
    int managementPort,
    int backlog,
    boolean tcpNodelay,
    int keepAliveMaxIdle,
    Duration keepAliveTimeout,
    int poolSize,
    PoolOrder poolOrder,
    ThreadKind connectionThreads,
    NettyTransport nettyTransport,
    int queueBound,
    int loops,
    int fronts,
    BlockTheLoop blockTheLoop,
    URI downstreamUrl,
    int downstreamConnections,
    Duration downstreamTimeout,
    Duration downstreamKeepIdle,
    Defaults frameworkDefaults,
    Client downstreamClient,
    String tokenSums) {
  /** The lab's, or those that a framework ships with. */
  public enum Defaults {
    LAB,
    SHIPPED
  }

  /** The framework's, or the lab's. */
  public enum Client {
    FRAMEWORK,
    LAB
  }

  static final IntOption HTTP_PORT = new IntOption("http_port", 8080, 0, 65_535);
  static final IntOption MANAGEMENT_PORT = new IntOption("management_port", 8081, 0, 65_535);
  static final IntOption BACKLOG = new IntOption("backlog", 4096, 1, 65_535);
  public static final IntOption KEEP_ALIVE_MAX_IDLE =
      new IntOption("keep_alive_max_idle", 20_000, 1, 1_000_000);
  static final IntOption KEEP_ALIVE_TIMEOUT_S = new IntOption("keep_alive_timeout_s", 120, 1, 3600);
  public static final IntOption POOL_SIZE = new IntOption("pool_size", 200, 1, 20_000);
  public static final IntOption QUEUE_BOUND = new IntOption("queue_bound", 0, 0, 1_000_000);
  public static final IntOption FRONTS = new IntOption("fronts", 1, 1, 64);
  public static final IntOption LOOPS = new IntOption("loops", 0, 0, 256);
  public static final IntOption DOWNSTREAM_CONNECTIONS =
      new IntOption("downstream_connections", 20_000, 1, 60_000);
  public static final IntOption DOWNSTREAM_TIMEOUT_MS =
      new IntOption("downstream_timeout_ms", 10_000, 1, 600_000);
  public static final IntOption DOWNSTREAM_KEEP_IDLE_S =
      new IntOption("downstream_keep_idle_s", 60, 1, 3600);

  /** No variable sets it: a fault to be found, which a server never starts with. */
  public static final IntOption LOCK_MS = new IntOption("lock_ms", 0, 0, 60_000);

  /** Another one, of threads that can be virtual. */
  public static final IntOption PIN_MS = new IntOption("pin_ms", 0, 0, 60_000);

  public static final String BLOCK_THE_LOOP = "block_the_loop";
  public static final String POOL_ORDER = "pool_order";
  public static final String CONNECTION_THREADS = "connection_threads";
  public static final String NETTY_TRANSPORT = "netty_transport";
  public static final String FRAMEWORK_DEFAULTS = "framework_defaults";
  public static final String DOWNSTREAM_CLIENT = "downstream_client";
  private static final String TCP_NODELAY = "tcp_nodelay";
  private static final String DOWNSTREAM_URL = "downstream_url";
  private static final String DEFAULT_DOWNSTREAM_URL = "http://toxiproxy:8666/";
  private static final String TOKEN_SUMS = "token_sums";

  /** Variables with our prefix that the image's start script reads before there is a JVM. */
  private static final Set<String> READ_BEFORE_START = Set.of("LAB_JVM_FLAGS");

  /**
   * Reads the {@code LAB_*} variables.
   *
   * @throws BadValueException on an unknown {@code LAB_*} variable or a value that is not allowed
   */
  public static Settings fromEnvironment(Map<String, String> environment) throws BadValueException {
    Set<String> known =
        Stream.concat(read(Map.of()).asMap().keySet().stream(), Stream.of(TOKEN_SUMS))
            .map(Settings::variable)
            .collect(Collectors.toCollection(TreeSet::new));
    List<String> unknown =
        environment.keySet().stream()
            .filter(name -> name.startsWith("LAB_"))
            .filter(name -> !known.contains(name) && !READ_BEFORE_START.contains(name))
            .sorted()
            .toList();
    if (!unknown.isEmpty()) {
      throw new BadValueException(
          "unknown setting %s; known are %s".formatted(String.join(", ", unknown), known));
    }
    return read(environment);
  }

  private static Settings read(Map<String, String> environment) throws BadValueException {
    return new Settings(
        number(environment, HTTP_PORT),
        number(environment, MANAGEMENT_PORT),
        number(environment, BACKLOG),
        flag(environment, TCP_NODELAY, true),
        number(environment, KEEP_ALIVE_MAX_IDLE),
        Duration.ofSeconds(number(environment, KEEP_ALIVE_TIMEOUT_S)),
        number(environment, POOL_SIZE),
        word(environment, POOL_ORDER, PoolOrder.FIFO),
        word(environment, CONNECTION_THREADS, ThreadKind.VIRTUAL),
        word(environment, NETTY_TRANSPORT, NettyTransport.NIO),
        number(environment, QUEUE_BOUND),
        number(environment, LOOPS),
        number(environment, FRONTS),
        BlockTheLoop.parse(
            variable(BLOCK_THE_LOOP), environment.getOrDefault(variable(BLOCK_THE_LOOP), "false")),
        httpUrl(environment, DOWNSTREAM_URL, DEFAULT_DOWNSTREAM_URL),
        number(environment, DOWNSTREAM_CONNECTIONS),
        Duration.ofMillis(number(environment, DOWNSTREAM_TIMEOUT_MS)),
        Duration.ofSeconds(number(environment, DOWNSTREAM_KEEP_IDLE_S)),
        word(environment, FRAMEWORK_DEFAULTS, Defaults.LAB),
        word(environment, DOWNSTREAM_CLIENT, Client.FRAMEWORK),
        environment.getOrDefault(variable(TOKEN_SUMS), ""));
  }

  /**
   * Returns how many event loops there are to be.
   *
   * @param byItself as many as the model has when the setting does not say
   */
  public int loops(int byItself) {
    return loops == 0 ? byItself : loops;
  }

  /** True if a framework keeps the defaults that it ships with. */
  public boolean shipped() {
    return frameworkDefaults == Defaults.SHIPPED;
  }

  /** Returns the settings by snake_case name, values as JSON shows them. */
  public Map<String, Object> asMap() {
    Map<String, Object> map = new LinkedHashMap<>();
    map.put(HTTP_PORT.name(), httpPort);
    map.put(MANAGEMENT_PORT.name(), managementPort);
    map.put(BACKLOG.name(), backlog);
    map.put(TCP_NODELAY, tcpNodelay);
    map.put(KEEP_ALIVE_MAX_IDLE.name(), keepAliveMaxIdle);
    map.put(KEEP_ALIVE_TIMEOUT_S.name(), keepAliveTimeout.toSeconds());
    map.put(POOL_SIZE.name(), poolSize);
    map.put(POOL_ORDER, lowerCase(poolOrder));
    map.put(CONNECTION_THREADS, lowerCase(connectionThreads));
    map.put(NETTY_TRANSPORT, lowerCase(nettyTransport));
    map.put(QUEUE_BOUND.name(), queueBound);
    map.put(LOOPS.name(), loops);
    map.put(FRONTS.name(), fronts);
    map.put(BLOCK_THE_LOOP, blockTheLoop.json());
    map.put(DOWNSTREAM_URL, downstreamUrl.toString());
    map.put(DOWNSTREAM_CONNECTIONS.name(), downstreamConnections);
    map.put(DOWNSTREAM_TIMEOUT_MS.name(), downstreamTimeout.toMillis());
    map.put(DOWNSTREAM_KEEP_IDLE_S.name(), downstreamKeepIdle.toSeconds());
    map.put(FRAMEWORK_DEFAULTS, lowerCase(frameworkDefaults));
    map.put(DOWNSTREAM_CLIENT, lowerCase(downstreamClient));
    return map;
  }

  private static String variable(String name) {
    return "LAB_" + name.toUpperCase(Locale.ROOT);
  }

  private static int number(Map<String, String> environment, IntOption option)
      throws BadValueException {
    String name = variable(option.name());
    String text = environment.get(name);
    if (text == null) {
      return option.fallback();
    }
    return new IntOption(name, option.fallback(), option.min(), option.max()).parse(text);
  }

  private static boolean flag(Map<String, String> environment, String name, boolean fallback)
      throws BadValueException {
    String text = environment.getOrDefault(variable(name), Boolean.toString(fallback));
    return switch (text) {
      case "true" -> true;
      case "false" -> false;
      default ->
          throw new BadValueException(
              "%s must be true or false, got '%s'".formatted(variable(name), text));
    };
  }

  /** Reads one of an enum's names, in lower case. */
  private static <E extends Enum<E>> E word(
      Map<String, String> environment, String name, E fallback) throws BadValueException {
    String text = environment.getOrDefault(variable(name), lowerCase(fallback));
    E[] all = fallback.getDeclaringClass().getEnumConstants();
    for (E each : all) {
      if (lowerCase(each).equals(text)) {
        return each;
      }
    }
    throw new BadValueException(
        "%s must be %s, got '%s'"
            .formatted(
                variable(name),
                Arrays.stream(all).map(Settings::lowerCase).collect(Collectors.joining(" or ")),
                text));
  }

  /** An enum's name as a setting. */
  public static String lowerCase(Enum<?> word) {
    return word.name().toLowerCase(Locale.ROOT);
  }

  private static URI httpUrl(Map<String, String> environment, String name, String fallback)
      throws BadValueException {
    String text = environment.getOrDefault(variable(name), fallback);
    try {
      URI url = URI.create(text);
      if ("http".equals(url.getScheme()) && url.getHost() != null && !url.getPath().isEmpty()) {
        return url;
      }
    } catch (IllegalArgumentException e) {
      // Falls through to the same refusal.
    }
    throw new BadValueException(
        "%s must look like http://host:port/path, got '%s'".formatted(variable(name), text));
  }
}
