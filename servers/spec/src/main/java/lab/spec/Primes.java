package lab.spec;

/** The work of {@code /compute}: pure CPU, no memory. */
public final class Primes {
  private Primes() {}

  /** Sums the primes up to a limit, by trial division: 50,000 keep a CPU busy for about 1 ms. */
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
