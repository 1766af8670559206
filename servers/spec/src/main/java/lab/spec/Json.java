package lab.spec;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** The little JSON the contract speaks: it writes any value and reads flat objects. */
public final class Json {
  private Json() {}

  /** Writes text, numbers, booleans, null, maps with text keys, and collections; spaces nowhere. */
  public static String write(@Nullable Object value) {
    return switch (value) {
      case null -> "null";
      case String text -> quote(text);
      case Integer number -> number.toString();
      case Long number -> number.toString();
      case Double number when Double.isFinite(number) -> number.toString();
      case Boolean flag -> flag.toString();
      case Map<?, ?> map ->
          map.entrySet().stream()
              .map(entry -> quote(String.valueOf(entry.getKey())) + ":" + write(entry.getValue()))
              .collect(Collectors.joining(",", "{", "}"));
      case Iterable<?> items -> {
        StringBuilder out = new StringBuilder("[");
        for (Object item : items) {
          out.append(out.length() > 1 ? "," : "").append(write(item));
        }
        yield out.append(']').toString();
      }
      default -> throw new IllegalArgumentException("not JSON: " + value.getClass());
    };
  }

  public static String quote(String text) {
    StringBuilder out = new StringBuilder(text.length() + 2).append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < 0x20) {
        out.append("\\u%04x".formatted((int) c));
      } else {
        out.append(c);
      }
    }
    return out.append('"').toString();
  }

  /** Reads an object of whole numbers, in the order given, none of them named twice. */
  public static Map<String, Long> readNumbers(String text) throws BadValueException {
    String body = text.strip();
    if (body.length() < 2 || body.charAt(0) != '{' || body.charAt(body.length() - 1) != '}') {
      throw notNumbers();
    }
    Map<String, Long> numbers = new LinkedHashMap<>();
    String members = body.substring(1, body.length() - 1).strip();
    for (String member : members.isEmpty() ? new String[0] : members.split(",", -1)) {
      String[] parts = member.split(":", -1);
      String name = parts[0].strip();
      if (parts.length != 2
          || !name.matches("\"[a-z_]+\"")
          || !parts[1].strip().matches("-?\\d{1,18}")) {
        throw notNumbers();
      }
      if (numbers.put(name.substring(1, name.length() - 1), Long.parseLong(parts[1].strip()))
          != null) {
        throw new BadValueException(name + " is given twice");
      }
    }
    return numbers;
  }

  private static BadValueException notNumbers() {
    return new BadValueException(
        "the body must be an object of whole numbers, like {\"pool_size\":300}");
  }
}
