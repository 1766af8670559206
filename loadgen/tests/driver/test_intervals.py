"""Answers by hand: n = 6, k = 1: 1 - 2/64. n = 9, k = 2: 1 - 2(1+9)/512."""

import pytest

from lab.intervals import Interval, median_of, symmetric_coverage


def test_six_values_give_least_to_greatest() -> None:
    of = median_of([5.0, 1.0, 4.0, 2.0, 9.0, 3.0])
    assert (of.count, of.median) == (6, 3.5)
    assert of.interval == Interval(1.0, 9.0, 0.96875)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_fewer_than_six_give_none(count: int) -> None:
    of = median_of([float(value) for value in range(count)])
    assert of.interval is None
    assert of.median == (count - 1) / 2


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


def test_the_confidence_asked_for_decides() -> None:
    assert median_of([1.0, 2.0, 3.0], 0.75).interval == Interval(1.0, 3.0, 0.75)
    assert median_of([1.0, 2.0, 3.0], 0.76).interval is None


def test_coverage_of_twenty_as_in_tables() -> None:
    # C(20, 0..5) sum to 21700, out of 1048576.
    assert symmetric_coverage(20, 6) == 1 - 2 * 21700 / 1048576


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf")]])
def test_what_has_no_median_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="no median"):
        median_of(values)
