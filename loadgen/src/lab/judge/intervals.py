"""Intervals for values that were measured several times. They assume no distribution.

Sources, for the median: H. A. David and H. N. Nagaraja, Order Statistics, 3rd ed., Wiley 2003,
section 7.1 (distribution-free confidence intervals for quantiles). For the ratio of two sides:
J. L. Hodges and E. L. Lehmann, Ann. Math. Statist. 34 (1963) 598; D. F. Bauer, J. Amer.
Statist. Assoc. 67 (1972) 687; M. Hollander and D. A. Wolfe, Nonparametric Statistical Methods,
2nd ed., Wiley 1999, section 4.3. For the ratio of pairs: the same, section 3.3; J. W. Tukey's
averages of F. Wilcoxon's signed ranks. For the slope: P. K. Sen, J. Amer. Statist. Assoc. 63 (1968)
1379; G. V. Bayley and J. M. Hammersley, J. R. Statist. Soc. Suppl. 8 (1946) 184. For a share: C. J.
Clopper and E. S. Pearson, Biometrika 26 (1934) 404.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from copy import replace
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from statistics import NormalDist

CONFIDENCE = 0.95
# A median of fewer values has no interval of 95 %. The ratio of two sides could have one from four
# values each; it needs as many here, so that one rule holds for everything about launches.
LEAST_VALUES = 6
# Sen's interval rests on a normal approximation, which is good from about ten values on.
LEAST_TIMES = 10
# That of Sen's interval, so that it holds the true slope 95 % of the time where neighbours depend
# on each other. Chosen by the simulation in test_intervals.py.
SLOPE_CONFIDENCE = 0.99


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds that hold the estimated value with probability `coverage`."""

    low: float
    high: float
    coverage: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"an interval from {self.low} to {self.high}")
        if not 0 < self.coverage < 1:
            raise ValueError(f"coverage must be between 0 and 1, not {self.coverage}")


@dataclass(frozen=True, slots=True)
class MedianOf:
    """The median of `count` values. `interval` is None where there are too few values."""

    count: int
    median: float
    interval: Interval | None


def median_of(values: Sequence[float]) -> MedianOf:
    """The sample median, and the narrowest symmetric interval [X(k), X(n+1-k)] for the median.

    For independent values of one continuous distribution the interval holds its median with
    probability 1 - 2 P(B <= k-1), B binomial(n, 1/2); k is the largest for which that is at least
    95 %. With 6 values k = 1 and the coverage is 96.9 %. Raises ValueError without values, or for a
    value that is not finite."""
    if not values or not all(map(math.isfinite, values)):
        raise ValueError(f"no median of {list(values)}")
    return MedianOf(len(values), statistics.median(values), interval_of(values))


def interval_of(values: Sequence[float], unknown: int = 0) -> Interval | None:
    """That of `median_of`, where the values of `unknown` more may be anything: each counts below
    the lower end and above the upper one. None where that leaves no end, or where there are too
    few."""
    ordered, n = sorted(values), len(values) + unknown
    wide_enough = [k for k in range(1, n // 2 + 1) if symmetric_coverage(n, k) >= CONFIDENCE]
    k = max(wide_enough, default=0)
    if k <= unknown:
        return None
    return Interval(ordered[k - 1 - unknown], ordered[n - k], symmetric_coverage(n, k))


def share_interval(count: int, trials: int) -> Interval | None:
    """The exact interval of a share, of `count` in so many trials; None without a trial."""
    if not trials:
        return None
    # Imported here: it takes most of a second.
    from scipy.stats import binomtest

    ends = binomtest(count, trials).proportion_ci(confidence_level=CONFIDENCE, method="exact")
    return Interval(float(ends.low), float(ends.high), CONFIDENCE)


def symmetric_coverage(n: int, k: int) -> float:
    """P(X(k) <= median <= X(n+1-k)) of n values: 1 - 2 sum(i < k) of C(n, i) / 2**n."""
    return 1 - 2 * sum(math.comb(n, i) for i in range(k)) / (1 << n)


@dataclass(frozen=True, slots=True)
class RatioOf:
    """The ratio of side B to side A. `interval` is None where there are too few values."""

    count_a: int
    count_b: int
    ratio: float
    interval: Interval | None


def ratio_of(a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE) -> RatioOf:
    """The Hodges-Lehmann estimate of b / a, and the narrowest symmetric interval of its order
    statistics. The estimate is the median of all ratios of a value of b to a value of a, taken of
    their logarithms.

    If the logarithms of both sides have one distribution up to a shift, [R(k), R(mn+1-k)] of the mn
    ordered ratios holds the ratio with probability 1 - 2 P(U <= k-1), where U is the Mann-Whitney
    statistic. If one side scatters much less than the other, it holds it less often: in the limit
    as often as order statistics of the other side alone hold its median (`symmetric_coverage`). k
    is the largest for which both are at least `confidence`. Equal values make the interval hold at
    least as often. There is none below LEAST_VALUES on either side. Raises ValueError for a value
    that is not above 0 and finite."""
    _check_ratio(a, b)
    ratios = sorted(after / before for before in a for after in b)
    interval = None
    m, n = len(a), len(b)
    if min(m, n) >= LEAST_VALUES:
        ways = rank_sum_ways(m, n)
        coverages = (
            # Where A does not scatter, the m ratios to each value of B are equal.
            min(coverage, symmetric_coverage(n, -(-k // m)), symmetric_coverage(m, -(-k // n)))
            for k, coverage in enumerate(_coverages(ways), start=1)
        )
        interval = _narrowest(ratios, coverages, confidence)
    return RatioOf(len(a), len(b), _middle(ratios), interval)


def _check_ratio(a: Sequence[float], b: Sequence[float]) -> None:
    for side in (a, b):
        if not side or not all(math.isfinite(value) and value > 0 for value in side):
            raise ValueError(f"no ratio of {list(a)} and {list(b)}")


def _middle(ratios: Sequence[float]) -> float:
    """The median of ordered ratios; of an even number the geometric mean of the middle two."""
    count = len(ratios)
    return math.sqrt(ratios[(count - 1) // 2] * ratios[count // 2])


def _coverages(ways: Sequence[int]) -> Iterator[float]:
    """How often [R(k), R(N+1-k)] of N ordered ratios holds the true one, for k = 1, 2, … `ways`
    counts, of all orders that are equally likely, those with 0, 1, … ratios below it."""
    total, below = sum(ways), 0
    for count in ways:
        below += count
        yield 1 - 2 * below / total


def _narrowest(
    ratios: Sequence[float], coverages: Iterable[float], confidence: float
) -> Interval | None:
    """The narrowest [R(k), R(N+1-k)] of N ordered ratios that has that confidence, if any has."""
    interval = None
    for k, coverage in enumerate(coverages, start=1):
        if coverage < confidence or 2 * k > len(ratios):
            break
        # From 54 pairs on the widest one is as good as sure: 1 - 2 / 2**54 is 1 to a float.
        interval = Interval(ratios[k - 1], ratios[-k], min(coverage, math.nextafter(1, 0)))
    return interval


def most_coverage(count: int) -> float:
    """The coverage of the widest interval of a ratio of so many pairs, or values of each side."""
    return symmetric_coverage(count, 1)


def needed(confidence: float) -> int:
    """The fewest pairs, or values of each side, that have an interval of that confidence. Raises
    ValueError for a confidence of 1 or more."""
    if confidence >= 1:
        raise ValueError(f"no number of values gives a confidence of {confidence}")
    count = LEAST_VALUES
    while most_coverage(count) < confidence:
        count += 1
    return count


@cache
def signed_rank_ways(n: int) -> Sequence[int]:
    """How many of the 2**n signs of the ranks 1 … n have positive ranks whose sum is 0, 1, …
    n(n+1)/2 (Hollander and Wolfe, section 3.1)."""
    ways = [1]
    for rank in range(1, n + 1):
        longer = [*ways, *([0] * rank)]
        for total, count in enumerate(ways):
            longer[total + rank] += count
        ways = longer
    return ways


def ratio_of_pairs(
    a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE
) -> RatioOf:
    """The Hodges-Lehmann estimate of b / a where a[i] and b[i] were measured side by side, and the
    narrowest symmetric interval of its order statistics. What drifts from pair to pair, and is the
    same within a pair, does not count.

    The estimate is the median of the Walsh averages of the logarithms of b[i] / a[i]: the averages
    of any two of them, and each alone. If each logarithm is distributed symmetrically around that
    of the ratio, and independently of the others, [W(k), W(M+1-k)] of the M ordered averages holds
    the ratio with probability 1 - 2 P(T <= k-1), where T is Wilcoxon's signed-rank statistic. k is
    the largest for which that is at least `confidence`. Equal values make the interval hold at
    least as often. For 95 % it takes 6 pairs. Raises ValueError for sides of different lengths, or
    a value that is not above 0 and finite."""
    _check_ratio(a, b)
    if len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} values are not pairs")
    of_pairs = [after / before for before, after in zip(a, b, strict=True)]
    # The average of two logarithms is that of the root of the product.
    ratios = sorted(math.sqrt(x * y) for i, x in enumerate(of_pairs) for y in of_pairs[i:])
    interval = _narrowest(ratios, _coverages(signed_rank_ways(len(of_pairs))), confidence)
    return RatioOf(len(a), len(b), _middle(ratios), interval)


def pseudo_median_of(values: Sequence[float]) -> MedianOf:
    """The median of the Walsh averages of values that are distributed symmetrically, with the
    interval of `ratio_of_pairs`, of whose logarithms it is that."""
    ratio = ratio_of_pairs([1.0] * len(values), [math.exp(value) for value in values])
    ends = ratio.interval
    interval = ends and replace(ends, low=math.log(ends.low), high=math.log(ends.high))
    return MedianOf(len(values), math.log(ratio.ratio), interval)


@cache
def rank_sum_ways(m: int, n: int) -> Sequence[int]:
    """How many of the C(m+n, m) orders of m and n values have U = 0, 1, … mn. U counts the pairs in
    which the value of the m is the greater one: the coefficients of the Gaussian binomial
    (Hollander and Wolfe, section 4.1)."""
    # The greatest value is either one of the m, above all n, or one of the n, above none.
    table = [[1] for _ in range(n + 1)]
    for greater in range(1, m + 1):
        row = [[1]]
        for others in range(1, n + 1):
            ways = [0] * (greater * others + 1)
            for u, count in enumerate(table[others]):
                ways[u + others] += count
            for u, count in enumerate(row[others - 1]):
                ways[u] += count
            row.append(ways)
        table = row
    return table[n]


@dataclass(frozen=True, slots=True)
class SlopeOf:
    """Growth per second over `count` values. `interval` is None where there are too few values."""

    count: int
    per_s: float
    interval: Interval | None


def slope_of(times_s: Sequence[float], values: Sequence[float]) -> SlopeOf:
    """The Theil-Sen slope, the median of the slopes of all pairs, with a 95 % interval.

    The interval is Sen's, made wider where each value depends on the one before: its variance is
    multiplied by (1 + r) / (1 - r), as if there were fewer values (Bayley and Hammersley). r is the
    autocorrelation of the values around the line, plus (2 + 4r) / n, by which n values
    underestimate it. Simulated, 10 normal values without a trend show one in 0.3 % of cases where r
    is 0, in 2 % where it is 0.5, in 4 % where it is 0.7 and in 8 % where it is 0.9. There is none
    below LEAST_TIMES values. Raises ValueError for fewer than two different times, or a value that
    is not finite."""
    if len(times_s) != len(values) or not all(map(math.isfinite, (*times_s, *values))):
        raise ValueError(f"no slope of {len(times_s)} times and {len(values)} values, all finite")
    if len(set(times_s)) < 2:
        raise ValueError("a slope takes two different times")
    points = sorted(zip(times_s, values, strict=True))
    slopes = sorted(
        (after - before) / (end - start)
        for (start, before), (end, after) in combinations(points, 2)
        if end > start
    )
    slope, interval = statistics.median(slopes), None
    if len(values) >= LEAST_TIMES:
        n, fewer = len(values), _fewer([value - slope * at for at, value in points])
        # Kendall's score of n values has the variance n (n-1) (2n+5) / 18.
        deviation = math.sqrt(n * (n - 1) * (2 * n + 5) / 18 * fewer)
        width = NormalDist().inv_cdf((1 + SLOPE_CONFIDENCE) / 2) * deviation
        k = max(1, int((len(slopes) - width) / 2))
        # + 0.0 makes a slope of -0 a slope of 0.
        interval = Interval(slopes[k - 1] + 0.0, slopes[-k] + 0.0, CONFIDENCE)
    return SlopeOf(len(values), slope + 0.0, interval)


def _fewer(values: Sequence[float]) -> float:
    """(1 + r) / (1 - r)."""
    mean = statistics.fmean(values)
    squares = sum((value - mean) ** 2 for value in values)
    if squares == 0:
        return 1.0
    r = sum((x - mean) * (y - mean) for x, y in pairwise(values)) / squares
    r = min(max(r + (2 + 4 * r) / len(values), 0.0), 0.97)
    return (1 + r) / (1 - r)
