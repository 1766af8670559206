"""Simulated comparisons with a known ratio: does the judge say what is true, and how often not?

Each comparison is made by `compare`, as that of a run is, from one value per launch of each side.
All figures are shares of SIMULATIONS seeded comparisons, so a share of 2.5 % has a standard error
of 0.25 %: the limits have no allowance for chance.
"""

import copy
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from lab.judge.compare import MARGIN, Answer, compare
from lab.model import Row
from support.planned import experiment, planner, row

SIMULATIONS = 4_000
LAUNCHES = 6
# A family of ten answers takes more launches than one answer does.
FAMILIES, LOADS, LAUNCHES_OF_FAMILY = 200, 10, 12
LEAST_COVERAGE = 0.945
MOST_FALSE = 0.025
MOST_FALSE_OF_FAMILY = 0.05
Values = NDArray[np.float64]
# A world: for so many comparisons, the logarithms of what A and B measure in each round, where
# both are alike.
World = Callable[[Generator, int], tuple[Values, Values]]


def equal(rng: Generator, count: int) -> tuple[Values, Values]:
    """Launches differ by 2 %."""
    return _noise(rng, count, 0.02), _noise(rng, count, 0.02)


def unequal(rng: Generator, count: int) -> tuple[Values, Values]:
    """B scatters ten times as much as A."""
    return _noise(rng, count, 0.005), _noise(rng, count, 0.05)


def bimodal(rng: Generator, count: int) -> tuple[Values, Values]:
    """Three launches of ten are 10 % slower, on either side."""

    def side() -> Values:
        slow = rng.random((count, LAUNCHES)) < 0.3
        return _noise(rng, count, 0.01) + np.where(slow, np.log(0.9), 0.0)

    return side(), side()


def drifting(rng: Generator, count: int) -> tuple[Values, Values]:
    """The machine gets 10 % slower or faster from the first round to the last, at 1 % of noise."""
    steps = np.linspace(0, 0.1, LAUNCHES) * rng.choice((-1, 1), (count, 1))
    return _noise(rng, count, 0.01) + steps, _noise(rng, count, 0.01) + steps


def autocorrelated(rng: Generator, count: int) -> tuple[Values, Values]:
    """The machine wanders: each round keeps 0.7 of the last one's deviation of 5 %."""
    state = np.empty((count, LAUNCHES))
    state[:, 0] = rng.normal(0, 0.05, count)
    for at in range(1, LAUNCHES):
        state[:, at] = 0.7 * state[:, at - 1] + rng.normal(0, 0.05 * np.sqrt(1 - 0.49), count)
    return _noise(rng, count, 0.01) + state, _noise(rng, count, 0.01) + state


WORLDS: tuple[World, ...] = (equal, unequal, bimodal, drifting, autocorrelated)


class Shares(NamedTuple):
    """Of the comparisons that had these answers, and whose interval held the ratio."""

    better: float
    worse: float
    within: float
    coverage: float


def shares(world: World, ratio: float, count: int = SIMULATIONS) -> Shares:
    """Of the answers about B, which is `ratio` times A."""
    rng = np.random.default_rng([WORLDS.index(world), round(ratio * 1000)])
    a, b = world(rng, count)
    found = [answers([x], [y])[0] for x, y in zip(np.exp(a), ratio * np.exp(b), strict=True)]
    places = [answer.place for answer in found]
    intervals = [answer.ratio.interval for answer in found]
    return Shares(
        *(places.count(place) / count for place in ("better", "worse", "within")),
        sum(interval.low <= ratio <= interval.high for interval in intervals) / count,
    )


def answers(a: Sequence[Values], b: Sequence[Values]) -> Sequence[Answer]:
    """The comparison of two sides at these loads, of which none has a p95."""
    return compare(side(A, a), side(B, b), "a", "b").answers


def side(blank: Sequence[Row], loads: Sequence[Values]) -> list[Row]:
    """The rows of a side: at each load a value per round, as goodput."""
    return [
        copy.replace(of, achieved_rps=1000 * float(value), concurrency=load)
        for load, values in enumerate(loads, 1)
        for of, value in zip(blank, values, strict=False)
    ]


def _noise(rng: Generator, count: int, spread: float) -> Values:
    return rng.normal(0, spread, (count, LAUNCHES))


def _blank(server: str) -> tuple[Row, ...]:
    of = planner(experiment(servers=(server,), modes=("closed",)))
    engine = of.engine
    return tuple(
        row(of.plan(server, engine, "closed", 1, None, launch=launch))
        for launch in range(1, LAUNCHES_OF_FAMILY + 1)
    )


A, B = _blank("a"), _blank("b")


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.__name__)
def test_the_interval_covers_the_ratio(world: World) -> None:
    found = shares(world, 1 + MARGIN)
    assert found.coverage >= LEAST_COVERAGE, found
    assert max(found.better, found.worse) <= MOST_FALSE, found


@pytest.mark.parametrize("world", [equal, drifting], ids=lambda world: world.__name__)
def test_a_difference_inside_the_margin_is_hardly_ever_called_one(world: World) -> None:
    # Under the first rule this was "faster" half of the time.
    assert shares(world, 1.03, SIMULATIONS // 5).better <= MOST_FALSE


def families(ratio: float, count: int = FAMILIES) -> list[list[str]]:
    """The answers of families of ten loads, at each of which B is `ratio` times A."""
    rng = np.random.default_rng([99, round(ratio * 1000)])
    shape = (count, LOADS, LAUNCHES_OF_FAMILY)
    a, b = np.exp(rng.normal(0, 0.02, shape)), ratio * np.exp(rng.normal(0, 0.02, shape))
    return [[answer.place for answer in answers(x, y)] for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("ratio", [1.0, 1 + MARGIN])
def test_in_a_family_of_answers_hardly_any_is_false(ratio: float) -> None:
    """At 1 nothing differs. At the margin nothing is beyond it, and that is the worst case."""
    true = {"within", "cannot tell"}
    wrong = sum(not true.issuperset(family) for family in families(ratio))
    assert wrong / FAMILIES <= MOST_FALSE_OF_FAMILY


def test_in_a_family_of_answers_a_large_difference_is_found() -> None:
    found = [answer for family in families(1.2, FAMILIES // 5) for answer in family]
    assert found.count("better") >= 0.9 * len(found)


@pytest.mark.parametrize("world", [drifting, autocorrelated], ids=lambda world: world.__name__)
def test_a_machine_that_drifts_hides_neither_sameness_nor_a_difference(world: World) -> None:
    # Rounds are interleaved, so what both sides of a round share says nothing of either.
    assert shares(world, 1.0, SIMULATIONS // 5).within >= 0.95
    assert shares(world, 1.10, SIMULATIONS // 5).better >= 0.9
