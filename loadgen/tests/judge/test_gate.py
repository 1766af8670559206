"""A gate's covariate and its A/A floor, and how often it is right of simulated launches."""

import copy
import math
from collections.abc import Sequence
from datetime import timedelta
from operator import attrgetter

import numpy as np
import pytest
from numpy.typing import NDArray

from lab.judge.compare import Answer, Comparison, Figure, Limits, Overall, compare_all, overall
from lab.judge.values import CONTROL, Values
from lab.model import Row
from support.sides import CPU, GATE, answers, row, rows
from support.system import START

SIMULATIONS = 1_000
PARTS = ("cpu_generator_us", "cpu_proxy_us", "cpu_downstream_us")
# How fast the machine was in each launch, in time.
WANDERS = (1.0, 1.08, 0.95, 1.12, 0.9, 1.05, 1.1, 0.97, 1.03,
           0.92, 1.07, 1.0, 0.94, 1.02, 1.1, 0.96, 1.01, 0.93)  # fmt: skip
Sides = tuple[list[Row], list[Row]]


def machine(server: float = 1.0, parts: float = 1.0, launches: int = 9) -> Sides:
    """A base and a candidate in turns on a machine that wanders; the candidate's server and the
    control parts beside it cost so many times as much."""
    sides: Sides = [], []
    speeds = enumerate(WANDERS)
    for launch in range(1, launches + 1):
        for side in (0, 1) if launch % 2 else (1, 0):
            minute, slow = next(speeds)
            of_server, of_parts = (server, parts) if side else (1.0, 1.0)
            figures = {
                **dict.fromkeys(PARTS, 20.0 * slow * of_parts),
                "cpu_server_us": 50.0 * slow**CONTROL * of_server,
                "started_at": START + timedelta(minutes=minute),
            }
            sides[side].append(row("closed", launch=launch, **figures))
    return sides


def cpu_of(a: Sequence[Row], b: Sequence[Row]) -> Answer:
    [answer] = [answer for answer in answers(a, b, GATE) if answer.question.figure == "cpu"]
    return answer


def test_what_the_machine_did_is_taken_out_of_a_cpu_time() -> None:
    answer = cpu_of(*machine(server=1.1))
    assert (answer.place, answer.control.use) == ("worse", "used")
    assert answer.ratio.ratio == pytest.approx(1.1)
    assert answer.ratio.interval.high - answer.ratio.interval.low < 1e-9
    # The raw figure is there, and says nothing.
    assert CPU.place(answer.raw.interval.low, answer.raw.interval.high, "cpu") == "cannot tell"
    assert answer.raw.ratio != pytest.approx(answer.ratio.ratio)
    assert cpu_of(*machine()).place == "within"


def test_a_candidate_that_makes_the_control_parts_dearer_is_judged_by_the_raw_figure() -> None:
    answer = cpu_of(*machine(server=1.1, parts=1.3))
    assert (answer.control.use, answer.ratio) == ("differs", answer.raw)
    # Within the floor it may not be told from the machine; then the raw ratio has to agree.
    assert cpu_of(*machine(parts=1.01)).control.use == "used"
    answer = cpu_of(*machine(server=1.01, parts=0.94))
    assert (answer.control.use, answer.place, answer.why) == ("used", "cannot tell", "raw")
    assert answer.ratio.interval.low > CPU.high > answer.raw.ratio


def test_without_pairs_or_parts_there_is_no_covariate() -> None:
    few = cpu_of(*machine(launches=5))
    assert (few.control.use, few.same, few.ratio) == ("no floor", None, few.raw)
    a, b = machine()
    apart = cpu_of(a, [copy.replace(trial, run="other") for trial in b])
    assert (apart.control, apart.same, apart.ratio) == (None, None, apart.raw)
    b[3] = copy.replace(b[3], cpu_proxy_us=None)
    assert cpu_of(a, b).control is None


def test_a_floor_is_of_neighbours_of_one_side_and_of_no_drift() -> None:
    rounds = [("run", launch) for launch in range(1, 8)]
    # A B, B A, …: each launch is dearer by 1 % than the one before.
    times = [(2.0 * at, 2.0 * at + 1)[:: 1 if at % 2 == 0 else -1] for at in range(7)]
    a, b = ([1.01 ** time[side] for time in times] for side in (0, 1))
    same = Values(a, b, paired=True, rounds=rounds, times=times).same(0.95)
    assert (same.count_a, same.ratio) == (6, pytest.approx(1.0))
    assert (same.interval.low, same.interval.high) == pytest.approx((1 / 1.01, 1.01))
    # Launches of two runs are no neighbours, nor is one before a lost launch.
    for changed in (
        [*rounds[:3], *[("z", at) for at in range(1, 5)]],
        [*rounds[:3], *[("run", at) for at in range(5, 9)]],
    ):
        assert Values(a, b, paired=True, rounds=changed, times=times).same(0.95).count_a == 5
    assert Values(a, b, paired=True, rounds=rounds[:5], times=times[:5]).same(0.95) is None
    # Without a time no neighbours are known.
    assert Values(a, b, paired=True, rounds=rounds).same(0.95) is None


def test_neighbours_are_those_in_time_and_not_those_in_the_list() -> None:
    a, b = machine()
    assert cpu_of(a, b).same.count_a == cpu_of(a[::-1], b[::-1]).same.count_a == 8
    # The base in the third round was measured again after all others: the candidate's launch of
    # that round is no neighbour of the second one.
    a[2] = copy.replace(a[2], started_at=START + timedelta(hours=1))
    assert cpu_of(a, b).same.count_a == 7
    # A B, A B, …: none.
    for side, later in ((a, 0.0), (b, 0.5)):
        side[:] = [
            copy.replace(each, started_at=START + timedelta(hours=each.launch + later))
            for each in side
        ]
    assert cpu_of(a, b).same is None


# --- how often it is right: seeded launches, so each run of a test counts the same ---------------

BLANK = rows(launches=30)
THREE: dict[Figure, Limits] = {"goodput": Limits(low=0.95), "cpu": CPU, "memory": Limits(high=1.05)}


def judged(values: NDArray[np.float64]) -> Comparison:
    """A gate of three limits; values[figure, side, launch]."""
    a, b = (
        [
            copy.replace(each, achieved_rps=rps, cpu_server_us=us, p50_ms=ms)
            for each, rps, us, ms in zip(BLANK, *values[:, side].tolist(), strict=False)
        ]
        for side in (0, 1)
    )
    return compare_all([(("x", a), ("y", b))], THREE, attrgetter("p50_ms"))[0]


def gates(
    ratios: Sequence[float], launches: int, spread: float, count: int = SIMULATIONS
) -> dict[Overall, float]:
    """The shares of the answers of gates whose limits have these true ratios: of each side a value
    a launch, lognormal, so that the ratio of a pair scatters by `spread`."""
    rng = np.random.default_rng([launches, round(1000 * spread), *(round(1e4 * r) for r in ratios)])
    found = []
    for _ in range(count):
        logs = rng.normal(0, spread / math.sqrt(2), (3, 2, launches))
        logs[:, 1] += np.log(ratios)[:, None]
        found.append(overall([judged(np.exp(logs))]))
    every: tuple[Overall, ...] = ("worse", "cannot tell", "not worse")
    return {answer: found.count(answer) / count for answer in every}


@pytest.mark.parametrize("spread", [0.02, 0.05, 0.1])
def test_a_server_against_itself_fails_in_at_most_one_gate_of_twenty(spread: float) -> None:
    assert gates([1.0, 1.0, 1.0], 6, spread)["worse"] <= 0.05


def test_at_its_limits_a_gate_fails_in_at_most_one_of_twenty() -> None:
    # All six ratios of one limit are beyond it: 3 / 64, and three standard errors of it.
    assert gates([0.95, 1.05, 1.05], 6, 0.02)["worse"] <= 3 / 64 + 0.02
    assert gates([1.0, 1.05, 1.0], 6, 0.02)["not worse"] <= 0.05


# As docs/gate.md has it.
LAUNCHES = {0.02: 6, 0.03: 9, 0.05: 20}


@pytest.mark.parametrize("spread", LAUNCHES)
def test_ten_per_cent_more_cpu_is_caught_in_nine_of_ten(spread: float) -> None:
    assert gates([1.0, 1.1, 1.0], LAUNCHES[spread], spread, 400)["worse"] >= 0.9
    if LAUNCHES[spread] > 6:
        assert gates([1.0, 1.1, 1.0], 6, spread, 400)["worse"] < 0.9


def test_the_launches_that_are_asked_for_tell_in_nine_of_ten() -> None:
    # Six launches that scatter by exactly 4 %, and then as many as these ask for.
    six = np.array([-1.5, -0.9, -0.2, 0.2, 0.9, 1.5])
    six *= 0.04 / six.std(ddof=1)
    few = Values([1.0] * 6, np.exp(six).tolist(), paired=True)
    launches = few.launches_for(math.log(1.1 / 1.05), 0.95)
    assert launches is not None
    rng, worse = np.random.default_rng(7), 0
    for _ in range(500):
        b = 1.1 * np.exp(rng.normal(0, 0.04, launches))
        interval = Values([1.0] * launches, b.tolist(), paired=True).ratio(0.95).interval
        worse += CPU.place(interval.low, interval.high, "cpu") == "worse"
    assert worse / 500 >= 0.87


def test_a_ratio_at_its_limit_asks_for_no_launches() -> None:
    few = Values([1.0] * 6, [1.04, 1.06, 1.03, 1.07, 1.05, 1.05], paired=True)
    distances = (0.0, math.log(1.0501 / 1.05), math.log(1.09 / 1.05))
    known = [few.launches_for(distance, 0.95) is not None for distance in distances]
    assert known == [False, False, True]
