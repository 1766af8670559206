"""Intervals for values that were measured several times. They assume no distribution.

Sources, for the median: H. A. David and H. N. Nagaraja, Order Statistics, 3rd ed., Wiley 2003,
section 7.1 (distribution-free confidence intervals for quantiles). For the ratio of two sides:
J. L. Hodges and E. L. Lehmann, Ann. Math. Statist. 34 (1963) 598; D. F. Bauer, J. Amer.
Statist. Assoc. 67 (1972) 687; M. Hollander and D. A. Wolfe, Nonparametric Statistical Methods,
2nd ed., Wiley 1999, section 4.3; for pairs section 3.3. For the slope: P. K. Sen, J. Amer.
Statist. Assoc. 63 (1968) 1379.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

CONFIDENCE = 0.95
# A median of fewer values has no interval of 95 %. The ratio of two sides could have an interval
# from four values each. It needs as many here, so that one rule holds for everything about
# launches.
LEAST_VALUES = 6
# Sen's interval rests on a normal approximation, which is good from about ten values on.
LEAST_TIMES = 10


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


def median_of(values: Sequence[float], confidence: float = CONFIDENCE) -> MedianOf:
    """The sample median, and the narrowest symmetric interval [X(k), X(n+1-k)] for the median.

    For independent values of one continuous distribution the interval holds its median with
    probability 1 - 2 P(B <= k-1), B binomial(n, 1/2); k is the largest for which that is at
    least `confidence`. For 95 % that takes 6 values: there k = 1 and the coverage is 96.9 %.
    Raises ValueError without values, or for a value that is not finite.
    """
    if not values or not all(map(math.isfinite, values)):
        raise ValueError(f"no median of {list(values)}")
    ordered = sorted(values)
    n = len(ordered)
    wide_enough = [k for k in range(1, n // 2 + 1) if symmetric_coverage(n, k) >= confidence]
    interval = None
    if wide_enough:
        k = wide_enough[-1]
        interval = Interval(ordered[k - 1], ordered[n - k], symmetric_coverage(n, k))
    return MedianOf(n, statistics.median(ordered), interval)


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
    ordered ratios holds the ratio with probability 1 - 2 P(U <= k-1). U is the Mann-Whitney
    statistic, whose distribution is exactly known then. k is the largest for which that is at least
    `confidence`. Equal values make the interval hold at least as often. There is no interval below
    LEAST_VALUES on either side. Raises ValueError for a value that is not above 0 and finite.
    """
    for side in (a, b):
        if not side or not all(math.isfinite(value) and value > 0 for value in side):
            raise ValueError(f"no ratio of {list(a)} and {list(b)}")
    ratios = sorted(after / before for before in a for after in b)
    count = len(ratios)
    # Of an even number of ratios: the mean of the logarithms of the two in the middle.
    ratio = math.sqrt(ratios[(count - 1) // 2] * ratios[count // 2])
    interval = None
    if min(len(a), len(b)) >= LEAST_VALUES:
        ways = rank_sum_ways(len(a), len(b))
        total, below = sum(ways), 0
        for k in range(1, count // 2 + 1):
            below += ways[k - 1]
            coverage = 1 - 2 * below / total
            if coverage < confidence:
                break
            interval = Interval(ratios[k - 1], ratios[count - k], coverage)
    return RatioOf(len(a), len(b), ratio, interval)


def ratio_of_pairs(
    a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE
) -> RatioOf:
    """The Hodges-Lehmann estimate of b / a of pairs (a[i], b[i]), and the narrowest symmetric
    interval of Wilcoxon's signed-rank test: what both of a pair share, as drift, falls out.

    The estimate is the median of the n(n+1)/2 Walsh averages, the means of the logarithms of two
    ratios of a pair (each also with itself). If these logarithms are independent and symmetric
    about one value, [W(k), W(n(n+1)/2+1-k)] holds it with probability 1 - 2 P(T <= k-1), T the
    signed-rank statistic; k is the largest for which that is at least `confidence`. For 95 % that
    takes 6 pairs, with 96.9 %. Raises ValueError for sides of unlike length, or a value that is not
    above 0 and finite.
    """
    if len(a) != len(b) or not a:
        raise ValueError(f"no pairs of {list(a)} and {list(b)}")
    if not all(math.isfinite(value) and value > 0 for value in (*a, *b)):
        raise ValueError(f"no ratio of {list(a)} and {list(b)}")
    logs = [math.log(after / before) for before, after in zip(a, b, strict=True)]
    walsh = sorted((x + y) / 2 for x, y in combinations_with_replacement(logs, 2))
    interval = None
    if len(logs) >= LEAST_VALUES:
        below = 0
        for k, ways in enumerate(signed_rank_ways(len(logs))[: len(walsh) // 2], 1):
            below += ways
            coverage = 1 - 2 * below / 2 ** len(logs)
            if coverage < confidence:
                break
            interval = Interval(math.exp(walsh[k - 1]), math.exp(walsh[-k]), coverage)
    return RatioOf(len(a), len(b), math.exp(statistics.median(walsh)), interval)


def signed_rank_ways(n: int) -> list[int]:
    """How many of the 2**n subsets of the ranks 1 to n have the sum 0, 1, … n(n+1)/2."""
    ways = [1]
    for rank in range(1, n + 1):
        without, with_it = [*ways, *[0] * rank], [*[0] * rank, *ways]
        ways = [x + y for x, y in zip(without, with_it, strict=True)]
    return ways


def rank_sum_ways(m: int, n: int) -> list[int]:
    """How many of the C(m+n, m) orders of m and n values have U = 0, 1, … mn. U counts the pairs in
    which the value of the m is the greater one. These are the coefficients of the Gaussian binomial
    (Hollander and Wolfe, section 4.1; H. B. Mann and D. R. Whitney, 1947)."""
    # The greatest value is either one of the m, above all n, or one of the n, above none.
    table = [[1] for _ in range(n + 1)]
    for ones in range(1, m + 1):
        row = [[1]]
        for others in range(1, n + 1):
            ways = [0] * (ones * others + 1)
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


def slope_of(
    times_s: Sequence[float], values: Sequence[float], confidence: float = CONFIDENCE
) -> SlopeOf:
    """The Theil-Sen slope, the median of the slopes of all pairs, with Sen's interval.

    The interval assumes independent deviations from a straight line. It is too narrow where each
    value depends on the one before. There is no interval below LEAST_TIMES values. Raises
    ValueError for fewer than two different times, or a value that is not finite.
    """
    if len(times_s) != len(values) or not all(map(math.isfinite, (*times_s, *values))):
        raise ValueError(f"no slope of {len(times_s)} times and {len(values)} values, all finite")
    if len(set(times_s)) < 2:
        raise ValueError("a slope takes two different times")
    # Imported here: it takes most of a second, and only a slope needs it.
    from scipy.stats import theilslopes

    found = theilslopes(values, times_s, alpha=confidence)
    interval = None
    if len(values) >= LEAST_TIMES:
        # + 0.0 makes a slope of -0 a slope of 0.
        interval = Interval(found.low_slope + 0.0, found.high_slope + 0.0, confidence)
    return SlopeOf(len(values), found.slope + 0.0, interval)
