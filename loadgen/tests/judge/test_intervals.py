"""Answers by hand: n = 6, k = 1: 1 - 2/64. n = 9, k = 2: 1 - 2(1+9)/512.

Of the C(12,6) = 924 orders of 6 and 6 values, U is at most 5 in 1+1+2+3+5+7 = 19 (partitions
of 0 … 5) and at most 6 in 30: so k = 6, coverage 1 - 38/924; k = 7 would be 1 - 60/924 = 0.935.
"""

import math
import operator
from collections.abc import Callable
from copy import replace
from dataclasses import astuple
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, wilcoxon

from lab.judge.intervals import (
    LEAST_VALUES,
    Interval,
    MedianOf,
    RatioOf,
    SlopeOf,
    interval_of,
    median_of,
    needed,
    pseudo_median_of,
    rank_sum_ways,
    ratio_of,
    ratio_of_pairs,
    share_interval,
    signed_rank_ways,
    slope_of,
    symmetric_coverage,
)


def test_the_median_has_an_interval_of_six_values_or_more() -> None:
    six = median_of([5.0, 1.0, 4.0, 2.0, 9.0, 3.0])
    assert six == MedianOf(6, 3.5, Interval(1.0, 9.0, 0.96875))
    for count in range(1, 6):
        few = median_of([float(value) for value in range(count)])
        assert few == MedianOf(count, (count - 1) / 2, None)
    # From about 55 values on, the coverage of the widest interval rounds to 1.
    many = median_of([float(value) for value in range(1, 101)])
    assert many.interval == Interval(40.0, 61.0, symmetric_coverage(100, 40))
    # C(20, 0..5) sum to 21700, out of 1048576.
    assert symmetric_coverage(20, 6) == 1 - 2 * 21700 / 1048576


@pytest.mark.parametrize(
    ("count", "k", "coverage"),
    [
        (7, 1, 1 - 2 / 128),
        (8, 1, 1 - 2 / 256),  # k = 2: 1 - 2(1+8)/256 = 0.9297 is too little
        (9, 2, 1 - 20 / 512),
        (10, 2, 1 - 22 / 1024),
        (11, 2, 1 - 24 / 2048),  # k = 3: 1 - 2(1+11+55)/2048 = 0.9346
        (12, 3, 1 - 158 / 4096),
    ],
)
def test_the_narrowest_that_covers_is_taken(count: int, k: int, coverage: float) -> None:
    of = median_of([float(value) for value in range(1, count + 1)])
    assert of.interval == Interval(float(k), float(count + 1 - k), coverage)


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("estimate", "arguments"),
    [
        *((median_of, [values]) for values in ([], [1.0, NAN], [INF])),
        *((ratio_of, [values, [1.0]]) for values in ([], [0.0, 1], [-1.0, 1], [INF, 1], [NAN, 1])),
        *((ratio_of, [[1.0], values]) for values in ([], [0.0, 1], [-1.0, 1], [INF, 1], [NAN, 1])),
        *((ratio_of_pairs, pair) for pair in ([[], []], [[1.0], [1.0, 2]], [[0.0], [1.0]])),
        *((ratio_of_pairs, pair) for pair in ([[1.0], [NAN]],)),
        *((slope_of, sides) for sides in ([[], []], [[1.0], [1.0]], [[1.0, 1], [1.0, 2]])),
        *((slope_of, sides) for sides in ([[1.0, 2], [1.0]], [[1.0, 2], [1.0, NAN]])),
        (needed, [1.0]),
    ],
)
def test_what_has_no_estimate_is_refused(estimate: Callable[..., Any], arguments: Any) -> None:
    with pytest.raises(ValueError, match=r"no median|no ratio|not pairs|slope|no number"):
        estimate(*arguments)


def test_the_orders_of_six_and_six_are_the_partitions_of_u() -> None:
    ways = rank_sum_ways(6, 6)
    assert ways[:7] == [1, 1, 2, 3, 5, 7, 11]
    assert ways == ways[::-1]
    assert sum(ways) == math.comb(12, 6)
    assert rank_sum_ways(1, 3) == [1, 1, 1, 1]
    # U of 2 and 2: AABB 0, ABAB 1, ABBA and BAAB 2, BABA 3, BBAA 4.
    assert rank_sum_ways(2, 2) == [1, 1, 2, 1, 1]


@pytest.mark.parametrize(("m", "n"), [(4, 4), (6, 6), (6, 9), (10, 7)])
def test_coverage_is_what_scipy_says_of_the_exact_test(m: int, n: int) -> None:
    # a: 1 … m. b: all above, but so far below that exactly u pairs are the other way round.
    ways = rank_sum_ways(m, n)
    for u in range(m + 1):
        b = [m - u + 0.5, *(m + 1.0 + i for i in range(n - 1))]
        p = mannwhitneyu(range(1, m + 1), b, method="exact").pvalue
        assert p == pytest.approx(min(1, 2 * sum(ways[: u + 1]) / math.comb(m + n, m)))


def test_six_against_six_give_the_sixth_ratio_from_either_end() -> None:
    a = [1.0] * 6
    b = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    # Ratios: each of b six times. The 6th is 1, the 31st is 6; the middle two are 3 and 4.
    of = ratio_of(a, b)
    assert (of.count_a, of.count_b) == (6, 6)
    assert of.ratio == pytest.approx(math.sqrt(12))
    assert of.interval == Interval(1.0, 6.0, 1 - 38 / 924)


def test_with_ten_of_a_side_the_interval_is_the_same_whichever_side_scatters_not_at_all() -> None:
    # k = 24 of the Mann-Whitney statistic has 95 %. But of ten values alone X(3) and X(8) have
    # 89 %, and X(2) and X(9) have 97.9 %: so k is at most 20.
    a, b = [1.0] * 10, [float(n) for n in range(1, 11)]
    assert ratio_of(a, b).interval == Interval(2.0, 9.0, 1 - 22 / 1024)
    assert ratio_of(b, a).interval == Interval(1 / 9, 1 / 2, 1 - 22 / 1024)


@pytest.mark.parametrize(("count", "confidence", "least"), [(10, 0.95, 0.945), (9, 0.995, 0.985)])
@pytest.mark.parametrize("times", [1, 3, 10, 100])
def test_sides_of_unequal_scatter(
    count: int, confidence: float, least: float, times: float
) -> None:
    """The Mann-Whitney interval alone held it in 90 % of cases where 95 % were said."""
    random, held = Random(20261122), 0
    for _ in range(300):
        a, b = ([random.lognormvariate(0, by) for _ in range(count)] for by in (0.01, 0.01 * times))
        interval = ratio_of(a, b, confidence).interval
        held += interval.low <= 1 <= interval.high
    assert held >= least * 300


WHOLE = st.integers(-1000, 1000).map(float)
POWERS = st.integers(-3, 3).map(lambda power: 2.0**power)
FACTORS = st.builds(operator.mul, POWERS, st.sampled_from([1.0, -1.0]))
POSITIVE = st.integers(1, 10**6).map(float)
PAIRS = st.lists(st.tuples(POSITIVE, POSITIVE), min_size=1, max_size=12)


def moved(interval: Interval | None, factor: float, shift: float = 0.0) -> Interval | None:
    if interval is None:
        return None
    low, high = sorted(factor * end + shift for end in (interval.low, interval.high))
    return replace(interval, low=low, high=high)


def inside(inner: Interval | None, outer: Interval | None) -> bool:
    """True, too, where there is no outer one."""
    return outer is None or (
        inner is not None and outer.low <= inner.low <= inner.high <= outer.high
    )


@given(st.lists(WHOLE, min_size=1, max_size=40), FACTORS, WHOLE, st.randoms())
def test_a_median_moves_with_its_values(
    values: list[float], factor: float, shift: float, random: Random
) -> None:
    of, changed = median_of(values), [factor * value + shift for value in values]
    random.shuffle(changed)
    interval = moved(of.interval, factor, shift)
    assert median_of(changed) == MedianOf(len(values), factor * of.median + shift, interval)
    assert of.interval is None or of.interval.low <= of.median <= of.interval.high
    # Wherever some of them lay, an interval without them contains that of all.
    for unknown in range(min(4, len(values))):
        assert inside(of.interval, interval_of(values[unknown:], unknown))


@given(st.lists(WHOLE, min_size=1, max_size=12), FACTORS, WHOLE, st.randoms())
def test_a_pseudo_median_moves_with_its_values(
    values: list[float], factor: float, shift: float, random: Random
) -> None:
    few = [value / 100 for value in values]
    of, changed = pseudo_median_of(few), [factor * value + shift / 100 for value in few]
    random.shuffle(changed)
    after, interval = pseudo_median_of(changed), moved(of.interval, factor, shift / 100)
    assert after.median == pytest.approx(factor * of.median + shift / 100)
    assert (after.interval is None) == (interval is None)
    if after.interval and interval:
        assert astuple(after.interval) == pytest.approx(astuple(interval))
        assert after.interval.low <= after.median <= after.interval.high


@pytest.mark.parametrize("estimate", [ratio_of, ratio_of_pairs])
@given(PAIRS, st.tuples(POWERS, POWERS), st.randoms())
def test_a_ratio_moves_with_its_values(
    estimate: Callable[..., RatioOf],
    pairs: list[tuple[float, float]],
    by: tuple[float, float],
    random: Random,
) -> None:
    of, count = estimate(*zip(*pairs, strict=True)), len(pairs)
    changed = random.sample(pairs, count)
    a, b = ([factor * pair[side] for pair in changed] for side, factor in enumerate(by))
    if estimate is ratio_of:
        random.shuffle(b)
    factor = by[1] / by[0]
    assert estimate(a, b) == RatioOf(count, count, factor * of.ratio, moved(of.interval, factor))
    # Turned round it is turned over.
    turned = estimate(b, a)
    assert turned.ratio == pytest.approx(1 / factor / of.ratio)
    assert (of.interval is None) == (turned.interval is None) == (count < LEAST_VALUES)
    if of.interval and turned.interval:
        over = (1 / factor / of.interval.high, 1 / factor / of.interval.low, of.interval.coverage)
        assert astuple(turned.interval) == pytest.approx(over)
        assert of.interval.low <= of.ratio <= of.interval.high


CONFIDENCES = st.floats(0.95, 0.999)


@pytest.mark.parametrize("estimate", [ratio_of, ratio_of_pairs])
@given(PAIRS, CONFIDENCES, CONFIDENCES)
def test_less_confidence_gives_no_wider_interval(
    estimate: Callable[..., RatioOf], pairs: list[tuple[float, float]], one: float, other: float
) -> None:
    sides = [*zip(*pairs, strict=True)]
    least, most = sorted((one, other))
    narrow, wide = (estimate(*sides, confidence).interval for confidence in (least, most))
    assert inside(narrow, wide)
    for interval, confidence in ((narrow, least), (wide, most)):
        assert interval is None or interval.coverage >= confidence
    # One that is known better is wider, if the values allow for it.
    assert (wide is not None) == (len(pairs) >= needed(most))


POINTS = st.dictionaries(st.integers(0, 50).map(float), WHOLE, min_size=2, max_size=20)


@given(
    POINTS.map(dict.items).map(list),
    st.tuples(POWERS, WHOLE),
    st.tuples(FACTORS, WHOLE),
    st.randoms(),
)
def test_a_slope_moves_with_its_points(
    points: list[tuple[float, float]],
    later: tuple[float, float],
    higher: tuple[float, float],
    random: Random,
) -> None:
    of, factor = slope_of(*zip(*points, strict=True)), higher[0] / later[0]
    changed = [
        (at * later[0] + later[1], value * higher[0] + higher[1])
        for at, value in random.sample(points, len(points))
    ]
    interval = moved(of.interval, factor)
    after = SlopeOf(len(points), factor * of.per_s, interval)
    assert slope_of(*zip(*changed, strict=True)) == after
    assert of.interval is None or of.interval.low <= of.per_s <= of.interval.high


@settings(max_examples=40)
@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_of_a_share_contains_it(known: tuple[int, int]) -> None:
    count, trials = known
    of, rest = share_interval(count, trials), share_interval(trials - count, trials)
    assert 0 <= of.low <= count / trials <= of.high <= 1
    assert (1 - of.high, 1 - of.low) == pytest.approx((rest.low, rest.high))


def test_fewer_than_six_on_either_side_give_no_interval() -> None:
    for a, b in ((5, 6), (6, 5), (5, 50), (1, 1)):
        assert ratio_of([1.0] * a, [2.0] * b) == RatioOf(a, b, 2.0, None)
    # Of an odd number it is the one in the middle.
    assert ratio_of([1.0, 2.0, 4.0], [3.0]) == RatioOf(3, 1, 1.5, None)
    # Without spread it has no width.
    interval = ratio_of([100.0] * 6, [103.0] * 6).interval
    assert (interval.low, interval.high) == (1.03, 1.03)


def test_pairs_give_averages_from_either_end() -> None:
    # Of 2**6 signs one gives T = 0 and one T = 21: 1 - 2/64. The 21 averages of logarithms are in
    # the order of the products x * y, of which the 11th is 2 * 5 = 10.
    six = ratio_of_pairs([1.0] * 6, [4.0, 2.0, 6.0, 1.0, 3.0, 5.0])
    assert six == RatioOf(6, 6, math.sqrt(10), Interval(1.0, 6.0, 1 - 2 / 64))
    # T is 0, 1, 2, 3 for 1 + 1 + 1 + 2 = 5 of 256 signs, and at most 4 for 7: so k = 4. In order
    # 1, √2, √3 and 2 (of 2 * 2 and of 1 * 4); from above 8, √56, 7 and √48.
    eight = ratio_of_pairs([1.0] * 8, [float(n) for n in range(1, 9)])
    assert eight.interval == Interval(2.0, math.sqrt(48), 1 - 10 / 256)
    # What drifts with both of a pair does not count.
    a = [1.0, 10.0, 100.0, 1000.0, 5.0, 50.0]
    b = [value * 2 for value in a]
    assert ratio_of_pairs(a, b) == RatioOf(6, 6, 2.0, Interval(2.0, 2.0, 1 - 2 / 64))
    assert ratio_of_pairs(b, a) == RatioOf(6, 6, 0.5, Interval(0.5, 0.5, 1 - 2 / 64))


@pytest.mark.parametrize("n", [4, 6, 9, 12])
def test_coverage_of_pairs_is_what_scipy_says_of_the_exact_test(n: int) -> None:
    ways = signed_rank_ways(n)
    assert sum(ways) == 2**n
    for least in range(1, n + 1):
        # Only the rank `least` is positive: T is `least`.
        values = [float(rank if rank == least else -rank) for rank in range(1, n + 1)]
        p = wilcoxon(values, method="exact").pvalue
        assert p == pytest.approx(min(1, 2 * sum(ways[: least + 1]) / 2**n))


def test_five_pairs_give_no_interval_and_more_confidence_takes_more_pairs() -> None:
    assert ratio_of_pairs([1.0] * 5, [2.0] * 5) == RatioOf(5, 5, 2.0, None)
    assert ratio_of_pairs([1.0] * 6, [2.0] * 6, 0.97).interval is None
    assert [needed(of) for of in (0.95, 0.96875, 0.97, 0.999)] == [6, 6, 7, 11]


def test_the_interval_of_pairs_holds_the_ratio_however_unequal_the_sides_scatter() -> None:
    random, held = Random(20261122), 0
    for _ in range(2000):
        a, b = ([random.lognormvariate(0, scatter) for _ in range(6)] for scatter in (0.001, 0.1))
        interval = ratio_of_pairs(a, b).interval
        held += interval.low <= 1 <= interval.high
    # 0.96875 * 2000 = 1937.5, and three standard deviations of 7.8 below it.
    assert held >= 1914


def dependent(autocorrelation: float, random: Random) -> list[float]:
    values = [random.gauss(0, 1)]
    for _ in range(9):
        new = math.sqrt(1 - autocorrelation**2) * random.gauss(0, 1)
        values.append(autocorrelation * values[-1] + new)
    return values


def shown(count: int, autocorrelation: float, growth: float = 0.0) -> float:
    """In what share of simulations ten values show a growth, which in all is so many of their
    standard deviations. Each depends so much on the one before."""
    random, found = Random(20261122), 0
    for _ in range(count):
        values = dependent(autocorrelation, random)
        of = slope_of(range(10), [value + growth * at / 9 for at, value in enumerate(values)])
        found += of.interval.low > 0 or of.interval.high < 0
    return found / count


def test_values_that_depend_on_each_other_seldom_show_a_growth_that_is_not_there() -> None:
    """Sen's own interval showed one in 18 % of cases at 0.5, and in 28 % at 0.7."""
    assert shown(1000, 0.0) <= 0.02
    assert shown(2000, 0.5) <= 0.03
    assert shown(2000, 0.7) <= 0.05
    assert shown(1000, 0.9) <= 0.1


def test_a_growth_well_above_the_scatter_is_shown_all_the_same() -> None:
    assert shown(500, 0.0, growth=20) >= 0.95
    assert shown(500, 0.5, growth=20) >= 0.9


def test_one_wild_value_does_not_move_the_slope() -> None:
    values = [float(t) for t in range(11)]
    values[5] = 1000.0
    of = slope_of(range(11), values)
    assert of.per_s == 1.0
    assert of.interval.low <= 1.0 <= of.interval.high


def test_the_slope_is_the_median_of_those_of_all_pairs() -> None:
    line = slope_of([float(t) for t in range(10)], [5.0 + 2 * t for t in range(10)])
    assert line == SlopeOf(10, 2.0, Interval(2.0, 2.0, 0.95))
    assert slope_of(range(12), [7.0] * 12) == SlopeOf(12, 0.0, Interval(0.0, 0.0, 0.95))
    # 21 pairs: the 11th of their slopes in order is (45 - 9) / (10 - 1) = 4.
    of = slope_of([1.0, 2, 3, 4, 10, 12, 18], [9.0, 15, 19, 20, 45, 55, 78])
    assert of == SlopeOf(7, 4.0, None)
    # Too few times give no interval.
    assert slope_of([0.0, 10.0], [1.0, 6.0]) == SlopeOf(2, 0.5, None)
    assert slope_of(range(9), range(9)).interval is None


@pytest.mark.parametrize("count", [53, 54, 70])
def test_many_pairs_have_an_interval_as_few_have(count: int) -> None:
    pairs = [1.0 + 0.001 * (n % 7) for n in range(count)]
    interval = ratio_of_pairs([1.0] * count, pairs).interval
    assert 1.0 < interval.low < interval.high < 1.006
    assert 0.95 <= interval.coverage < 0.96
