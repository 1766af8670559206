"""The fit of a capacity: on margins of a line that is known, and on a simulated server."""

import math
import random

import pytest

from lab.judge.capacity import Capacity, Estimate, Margin, near, ratio


def margins(
    loads: list[float],
    capacity: float = 1000.0,
    *,
    steepness: float = 20.0,
    scatter: float = 0.0,
    launch: int = 1,
    seed: int = 1,
) -> list[Margin]:
    """Of trials whose margin is a line of the load's logarithm, known to ± 3 %."""
    drawn = random.Random(seed)
    found = []
    for load in loads:
        value = steepness * (math.log(load / capacity) + drawn.gauss(0, scatter))
        found.append(Margin(load, launch, value - 0.03, value + 0.03))
    return found


def test_a_line_that_is_known_is_found() -> None:
    found = Capacity(tuple(margins([500, 900, 960, 1010, 1050, 1500], scatter=0.01)))
    half, often = found.at(0.5), found.at(0.95)
    assert half.low < 1000 < half.high
    assert half.width < 0.1
    assert often.value < half.value
    assert found.of_launch(1).value == pytest.approx(half.value, rel=0.002)


def test_trials_that_only_miss_or_meet_bracket_it() -> None:
    """Far from the limit a margin has one end only."""
    far = [Margin(800, 1, -2.0, -1.9), Margin(1600, 1, 2.0, 2.1)]
    found = Capacity(tuple(far)).at(0.5)
    assert 600 < found.low < 850
    assert 1500 < found.high < 2100
    assert near(far)[0].low == -math.inf
    assert near(far)[1].high == math.inf


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [
        (-0.5, -0.1, "met"),
        (-0.5, 0.1, "met"),
        (-0.1, 0.5, "missed"),
        (0.1, math.inf, "missed"),
        (-math.inf, -0.1, "met"),
        # It was slower than the server is, or had not ended to be.
        (-math.inf, 0.4, ""),
        (-0.4, math.inf, ""),
    ],
)
def test_a_trial_met_or_missed_by_its_middle(low: float, high: float, says: str) -> None:
    found = Margin(1000, 1, low, high)
    assert (found.met, found.missed) == (says == "met", says == "missed")


def test_one_stall_far_below_moves_it_little() -> None:
    steady = margins([600, 800, 950, 990, 1010, 1060], scatter=0.01)
    stalled = [*steady, Margin(600, 1, 0.4, 0.5)]
    before, after = (Capacity(tuple(each)).at(0.5) for each in (steady, stalled))
    assert after.value == pytest.approx(before.value, rel=0.02)


def test_many_stalls_leave_no_load_that_nearly_all_trials_meet() -> None:
    steady = margins([500, 600, 700, 800, 900, 990, 1010], scatter=0.01)
    stalls = [Margin(load, 1, 0.4, 0.5) for load in (500, 600, 700, 800)]
    assert Capacity(tuple(steady)).at(0.95).low > 500
    found = Capacity((*steady, *stalls)).at(0.95)
    assert (found.value, found.low, found.width) == (0, 0, math.inf)


def test_jvms_that_differ_widen_it() -> None:
    alike = [
        each
        for launch in range(1, 7)
        for each in margins([900, 1000, 1100], launch=launch, scatter=0.01, seed=launch)
    ]
    apart = [
        each
        for launch in range(1, 7)
        for each in margins(
            [900, 1000, 1100], 900 + 40 * launch, launch=launch, scatter=0.01, seed=launch
        )
    ]
    near_by, wide = Capacity(tuple(alike)), Capacity(tuple(apart))
    assert near_by.at(0.5).width < 0.05 < wide.at(0.5).width
    assert wide.at(0.95).value < 0.97 * wide.at(0.5).value
    # A JVM is a little like the others.
    assert 940 < wide.of_launch(1).value < wide.at(0.5).value


def test_the_ratio_of_two_has_the_uncertainty_of_both() -> None:
    same = Estimate(1000.0, 900.0, 1100.0)
    found = ratio(same, Estimate(1200.0, 1140.0, 1250.0))
    assert found.value == pytest.approx(1.2)
    # Wider than either, and narrower than the ratio of the ends.
    assert 1140 / 1100 < found.low < 1140 / 1000
    assert 1250 / 1000 < found.high < 1250 / 900
    one = ratio(same, same)
    assert one.low == pytest.approx(1 / one.high, rel=0.01)


def test_the_next_load_is_a_toss_up_but_no_leap() -> None:
    held = [Margin(1000, 1, -math.inf, -0.8)]
    assert 2000 < Capacity(tuple(held)).next(1) <= 3000
    missed = [Margin(1000, 1, 0.8, math.inf)]
    assert Capacity(tuple(missed)).next(1) == pytest.approx(400, rel=0.3)
    both = Capacity((*held, Margin(2000, 1, 0.8, math.inf)))
    assert both.next(1) == pytest.approx(math.sqrt(2) * 1000, rel=0.05)
    # Of a JVM without a trial: where the others have it.
    assert both.next(2) == pytest.approx(both.next(1), rel=0.1)
