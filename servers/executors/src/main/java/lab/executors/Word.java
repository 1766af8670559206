package lab.executors;

import java.util.Arrays;
import java.util.stream.Collectors;
import lab.contract.BadValueException;

/** A word of a plan, one of a few that are allowed. */
interface Word {
  /** Returns the word itself. */
  String label();

  /**
   * Reads a word.
   *
   * @throws BadValueException with the allowed ones
   */
  static <T extends Word> T parse(String name, T[] allowed, String given) throws BadValueException {
    for (T one : allowed) {
      if (one.label().equals(given)) {
        return one;
      }
    }
    throw new BadValueException(
        "%s must be one of %s, got '%s'"
            .formatted(
                name,
                Arrays.stream(allowed).map(Word::label).collect(Collectors.joining(", ")),
                given));
  }
}
