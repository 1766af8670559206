package lab.spec;

/** A whole number with a default, and limits that are allowed: a setting, a knob or a parameter. */
public record IntOption(String name, int fallback, int min, int max) {
  public IntOption {
    if (fallback < min || fallback > max) {
      throw new IllegalArgumentException(name + ": default outside its own limits");
    }
  }

  public int parse(String text) throws BadValueException {
    try {
      return check(Long.parseLong(text));
    } catch (NumberFormatException e) {
      throw refusal(text);
    }
  }

  /** Returns the value when it is within the limits. */
  public int check(long value) throws BadValueException {
    if (value < min || value > max) {
      throw refusal(Long.toString(value));
    }
    return (int) value;
  }

  private BadValueException refusal(String given) {
    String shown = given.length() > 40 ? given.substring(0, 40) + "…" : given;
    return new BadValueException(
        "%s must be a whole number from %d to %d, got '%s'".formatted(name, min, max, shown));
  }
}
