package lab.spec;

/** The work of {@code /compute}: pure CPU, no memory. */
public final class Primes {
  private Primes() {}

  /**
   * Sums the primes up to and including a limit, by trial division: the point is to keep a CPU busy
   * for about a millisecond at 50,000, not to be clever.
   */
  public static long sumUpTo(int limit) {
    long sum = limit >= 2 ? 2 : 0;
    for (int candidate = 3; candidate <= limit; candidate += 2) {
      if (isOddPrime(candidate)) {
        sum += candidate;
      }
    }
    return sum;
  }

  private static boolean isOddPrime(int candidate) {
    for (int divisor = 3; divisor * divisor <= candidate; divisor += 2) {
      if (candidate % divisor == 0) {
        return false;
      }
    }
    return true;
  }
}
