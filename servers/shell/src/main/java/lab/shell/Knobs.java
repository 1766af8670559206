package lab.shell;

import static java.util.Objects.requireNonNull;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.IntConsumer;
import java.util.function.IntSupplier;
import lab.recorder.LockWatch;
import lab.spec.BadValueException;
import lab.spec.IntOption;
import lab.spec.Settings;
import org.jspecify.annotations.Nullable;

/** Settings that can be changed while the server runs. Read back is what is in force. */
public final class Knobs {
  private record Knob(IntOption option, IntSupplier current, IntConsumer apply) {}

  private final Settings settings;
  private final Map<String, Knob> knobs = new TreeMap<>();

  /** What is not as the settings say: another value, or null where there is no such thing. */
  private final Map<String, @Nullable Object> fixed = new HashMap<>();

  private final Map<String, Object> framework = new TreeMap<>();

  Knobs(Settings settings) {
    this.settings = settings;
  }

  /**
   * Adds a knob, whose value management threads read and change, one change at a time. A change is
   * within the option's limits, and must not wait for requests.
   */
  public synchronized void add(IntOption option, IntSupplier current, IntConsumer apply) {
    if (knobs.put(option.name(), new Knob(option, current, apply)) != null) {
      throw new IllegalStateException("two knobs named " + option.name());
    }
  }

  /** Tells a value that this JVM does not let anybody change. */
  synchronized void hasFixed(IntOption option, int value) {
    fixed.put(option.name(), value);
  }

  /** Tells that this model has what a setting is about, as the settings say. */
  public synchronized void has(String setting) {
    fixed.put(setting, settings.asMap().get(setting));
  }

  /** Tells that this model has so many event loops, for which the settings about them hold. */
  public synchronized void hasLoops(int loops) {
    fixed.put(Settings.LOOPS.name(), loops);
    // A framework may start its loops before or after what works beside them.
    if (!fixed.containsKey(Settings.BLOCK_THE_LOOP)) {
      fixed.put(Settings.BLOCK_THE_LOOP, settings.blockTheLoop().json());
    }
  }

  /** Tells a value in force that the framework brings, or that is set in its place. */
  public synchronized void ofFramework(String name, Object value) {
    framework.put(name, value);
    has(Settings.FRAMEWORK_DEFAULTS);
  }

  /** Tells that this model has nothing that a setting is about. */
  public synchronized void hasNo(String setting) {
    fixed.put(setting, null);
  }

  /** Returns every setting as it is in force now; null = this model has no such thing. */
  synchronized Map<String, Object> inForce() {
    Map<String, Object> map = new LinkedHashMap<>(settings.asMap());
    map.put(Settings.POOL_SIZE.name(), null);
    map.put(Settings.QUEUE_BOUND.name(), null);
    map.put(Settings.LOOPS.name(), null);
    map.put(Settings.FRONTS.name(), null);
    map.put(Settings.POOL_ORDER, null);
    map.put(Settings.CONNECTION_THREADS, null);
    map.put(Settings.NETTY_TRANSPORT, null);
    map.put(Settings.FRAMEWORK_DEFAULTS, null);
    map.put(Settings.DOWNSTREAM_CLIENT, null);
    map.put(Settings.BLOCK_THE_LOOP, null);
    map.put(Settings.LOCK_MS.name(), null);
    map.put(Settings.PIN_MS.name(), null);
    map.put(LockWatch.THRESHOLD_MS.name(), null);
    map.put("framework", framework.isEmpty() ? null : new TreeMap<>(framework));
    map.putAll(fixed);
    knobs.forEach((name, knob) -> map.put(name, knob.current.getAsInt()));
    return map;
  }

  /** Changes all the named knobs, or none of them, also where bringing one into force fails. */
  synchronized void change(Map<String, Long> wanted) throws BadValueException {
    for (Map.Entry<String, Long> each : wanted.entrySet()) {
      Knob knob = knobs.get(each.getKey());
      if (knob == null) {
        throw new BadValueException(
            "'%s' cannot be changed while this server runs; what can: %s"
                .formatted(each.getKey(), knobs.keySet()));
      }
      var unused = knob.option.check(each.getValue());
    }
    Map<Knob, Integer> before = new LinkedHashMap<>();
    try {
      wanted.forEach(
          (name, value) -> {
            Knob knob = requireNonNull(knobs.get(name));
            before.put(knob, knob.current.getAsInt());
            knob.apply.accept(value.intValue());
          });
    } catch (RuntimeException | Error e) {
      restore(before, e);
      throw e;
    }
  }

  private static void restore(Map<Knob, Integer> before, Throwable reason) {
    before.forEach(
        (knob, value) -> {
          try {
            knob.apply.accept(value);
          } catch (RuntimeException | Error e) {
            reason.addSuppressed(e);
          }
        });
  }
}
