"""The words of a comparison, and how its figures are rounded."""

import pytest

from lab.judge.compare import Comparison, compare, compare_all
from lab.judge.intervals import Interval
from lab.report.comparison import legend, ratio_interval
from lab.report.table import rate
from support.fakes import plan
from support.planned import row

LIMITS = (1, 1.05, 1 / 1.05)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.98, 1.012345, "[0.980, 1.012]"),
        # The first excludes 1, the second holds it.
        (1.0002, 1.0009, "[1.0002, 1.0009]"),
        (0.9998, 1.0009, "[0.9998, 1.0009]"),
        (1.0502, 1.2, "[1.0502, 1.2000]"),
        (0.9, 0.95237, "[0.900, 0.952]"),
        (0.9524, 1.2, "[0.9524, 1.2000]"),
        (1.0, 1.2, "[1.000, 1.200]"),
        (1.00000001, 1.2, "[1.000000, 1.200000]"),
    ],
)
def test_rounding_moves_no_end_across_a_limit(low: float, high: float, said: str) -> None:
    assert ratio_interval(Interval(low, high, 0.95), LIMITS) == said


def test_a_rate_has_its_digits() -> None:
    rates = (None, 0.0, 0.0412, 0.94, 0.96, 99.94, 99.96)
    assert [*map(rate, rates)] == ["–", "0.0", "0.041", "0.94", "1.0", "99.9", "100"]


def of_launches(launches: int, loads: int) -> tuple[Comparison, ...]:
    sides = [
        [
            row(plan("closed", concurrency=load, launch=n), achieved_rps=rps + n % 3)
            for n in range(1, launches + 1)
            for load in range(1, loads + 1)
        ]
        for rps in (1000.0, 1002.0)
    ]
    return compare_all([(("a", sides[0]), ("b", sides[1]))])


def test_intervals_of_too_few_launches_are_not_called_sure_together() -> None:
    (sure,) = legend(of_launches(7, 2))[1:]
    assert sure == (
        "2 answers: with a probability of at least 95% every interval holds its true ratio, so "
        "each has 97.5 % or more. That takes 7 launches of each side."
    )
    (few,) = legend(of_launches(6, 2))[1:]
    assert few == (
        "2 answers: that all of them hold with a probability of at least 95%, each takes an "
        "interval of 97.5 % or more, and so 7 launches of each side. An interval of fewer launches "
        "has 96.87 % or more by itself, and is no answer."
    )
    assert len(legend(of_launches(1, 2))) == 2
    assert legend([compare([], [], "a", "b")]) == []
