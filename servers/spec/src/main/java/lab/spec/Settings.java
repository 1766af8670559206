package lab.spec;

import java.net.URI;
import java.time.Duration;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What a server is started with: the same for every model, read once from the environment. A port 0
 * is any that is free.
 *
 * @param backlog length of the accept queue asked of the kernel (it caps it at somaxconn)
 * @param keepAliveTimeout how long a client connection may idle
 * @param lifo true if a pool gives the next request to the thread that began to wait last
 * @param platformThreads true if each connection has a thread of the kernel, not a virtual one
 * @param epoll true if Netty's loops use its own library for Linux, not the JDK's selectors
 * @param queueBound requests that may wait for a worker, 0 = unbounded; beyond it the answer is 503
 * @param loops event loops, 0 = as many as the model has by itself
 * @param fronts threads that read requests and hand them to others
 * @param downstreamConnections most downstream calls at a time; further ones wait
 * @param downstreamTimeout deadline of a downstream call, waiting for a connection included
 * @param downstreamKeepIdle how long a connection to the downstream may idle before it is closed;
 *     less than the downstream keeps it
 * @param shipped true if a framework keeps the defaults that it ships with; else it has the limits
 *     of the models without a framework
 * @param labClient true if a framework's server that blocks has the lab's client of the downstream
 * @param tokenSums by which the management port knows its token; it is in no answer
 * @param asMap the others by snake_case name, values as JSON shows them
 */
public record Settings(
    int httpPort,
    int managementPort,
    int backlog,
    Duration keepAliveTimeout,
    int poolSize,
    boolean lifo,
    boolean platformThreads,
    boolean epoll,
    int queueBound,
    int loops,
    int fronts,
    BlockTheLoop blockTheLoop,
    URI downstreamUrl,
    int downstreamConnections,
    Duration downstreamTimeout,
    Duration downstreamKeepIdle,
    boolean shipped,
    boolean labClient,
    String tokenSums,
    Map<String, Object> asMap) {
  static final IntOption HTTP_PORT = new IntOption("http_port", 8080, 0, 65_535);
  static final IntOption MANAGEMENT_PORT = new IntOption("management_port", 8081, 0, 65_535);
  static final IntOption BACKLOG = new IntOption("backlog", 4096, 1, 65_535);
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
  private static final String TOKEN_SUMS = "LAB_TOKEN_SUMS";

  /** A variable with our prefix that the image's start script reads before there is a JVM. */
  private static final String READ_BEFORE_START = "LAB_JVM_FLAGS";

  /** Reads the {@code LAB_*} variables; refuses any that is unknown, or has a value not allowed. */
  public static Settings fromEnvironment(Map<String, String> environment) throws BadValueException {
    Reader reader = new Reader(environment, new LinkedHashMap<>());
    Settings settings =
        new Settings(
            reader.number(HTTP_PORT),
            reader.number(MANAGEMENT_PORT),
            reader.number(BACKLOG),
            Duration.ofSeconds(reader.number(KEEP_ALIVE_TIMEOUT_S)),
            reader.number(POOL_SIZE),
            reader.isSecond(POOL_ORDER, "fifo", "lifo"),
            reader.isSecond(CONNECTION_THREADS, "virtual", "platform"),
            reader.isSecond(NETTY_TRANSPORT, "nio", "epoll"),
            reader.number(QUEUE_BOUND),
            reader.number(LOOPS),
            reader.number(FRONTS),
            reader.blockTheLoop(),
            reader.httpUrl("downstream_url", "http://toxiproxy:8666/"),
            reader.number(DOWNSTREAM_CONNECTIONS),
            Duration.ofMillis(reader.number(DOWNSTREAM_TIMEOUT_MS)),
            Duration.ofSeconds(reader.number(DOWNSTREAM_KEEP_IDLE_S)),
            reader.isSecond(FRAMEWORK_DEFAULTS, "lab", "shipped"),
            reader.isSecond(DOWNSTREAM_CLIENT, "framework", "lab"),
            environment.getOrDefault(TOKEN_SUMS, ""),
            Collections.unmodifiableMap(reader.json));
    Set<String> known =
        Stream.concat(reader.json.keySet().stream().map(Reader::variable), Stream.of(TOKEN_SUMS))
            .collect(Collectors.toCollection(TreeSet::new));
    String unknown =
        environment.keySet().stream()
            .filter(name -> name.startsWith("LAB_"))
            .filter(name -> !known.contains(name) && !name.equals(READ_BEFORE_START))
            .sorted()
            .collect(Collectors.joining(", "));
    if (!unknown.isEmpty()) {
      throw new BadValueException("unknown setting %s; known are %s".formatted(unknown, known));
    }
    return settings;
  }

  /** Returns how many event loops there are to be; unless set, as many as the model has. */
  public int loops(int byItself) {
    return loops == 0 ? byItself : loops;
  }

  /** Reads settings by their snake_case names, and puts each into {@code json}. */
  private record Reader(Map<String, String> environment, Map<String, Object> json) {
    static String variable(String name) {
      return "LAB_" + name.toUpperCase(Locale.ROOT);
    }

    private String text(String name, String fallback) {
      return environment.getOrDefault(variable(name), fallback);
    }

    int number(IntOption option) throws BadValueException {
      String text = text(option.name(), Integer.toString(option.fallback()));
      String shown = variable(option.name());
      int number = new IntOption(shown, option.fallback(), option.min(), option.max()).parse(text);
      json.put(option.name(), number);
      return number;
    }

    /** True if it is the second of two words; the first is the default. */
    boolean isSecond(String name, String first, String second) throws BadValueException {
      String text = text(name, first);
      if (!text.equals(first) && !text.equals(second)) {
        throw new BadValueException(
            "%s must be %s or %s, got '%s'".formatted(variable(name), first, second, text));
      }
      json.put(name, text);
      return text.equals(second);
    }

    BlockTheLoop blockTheLoop() throws BadValueException {
      String text = text(BLOCK_THE_LOOP, "false");
      BlockTheLoop how = BlockTheLoop.parse(variable(BLOCK_THE_LOOP), text);
      json.put(BLOCK_THE_LOOP, how.json());
      return how;
    }

    URI httpUrl(String name, String fallback) throws BadValueException {
      String text = text(name, fallback);
      json.put(name, text);
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
}
