"""What a gate says of known values, and how often it is right of simulated launches."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from lab.judge import gate
from lab.judge.compare import Side, Values
from lab.judge.gate import Answer, Asked, Check, Figure, Gate, Limit
from lab.judge.gates import FAILED_ITSELF, NOT_ITS_OWN
from lab.judge.grouping import Cell
from lab.judge.intervals import needed
from lab.model import AWAY, Mode, Row
from support.fakes import judged_row, measurement, plan, record

CPU = Limit("cpu", 1.05)
GOODPUT = Limit("goodput", 0.95)
LIMITS: dict[Figure, Limit] = {
    "goodput": GOODPUT, "p99": Limit("p99", 1.1), "cpu": CPU, "memory": Limit("memory", 1.1),
}  # fmt: skip
LOAD = Cell.of(judged_row("run", measurement()))
SIMULATIONS = 1_000
# How far the logarithms of candidate / base scatter from launch to launch, in the simulations.
SPREAD = 0.02


def paired(ratios: Sequence[float]) -> Values:
    return Values([1.0] * len(ratios), list(ratios), paired=True)


def asked(ratios: Sequence[float], limit: Limit = CPU) -> Asked:
    return Asked("lane", LOAD, limit, paired(ratios))


def judged(*ratios: Sequence[float], limit: Limit = CPU, looks: int = 1) -> Gate:
    return gate.judge("a", "b", [asked(one, limit) for one in ratios], looks=looks)


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [
        (0.5, 1.05, "not worse"),
        (1.0, 1.0500001, "cannot tell"),
        (1.05, 1.2, "cannot tell"),
        (1.0500001, 1.2, "worse"),
    ],
)
def test_the_whole_interval_decides(low: float, high: float, answer: Answer) -> None:
    assert CPU.answer(low, high) == answer
    # Of what more is better, with everything turned over.
    assert Limit("goodput", 1 / 1.05).answer(1 / high, 1 / low) == answer


@pytest.mark.parametrize(("figure", "ratio"), [("cpu", 0.9), ("goodput", 1.1), ("p99", math.inf)])
def test_a_limit_leaves_room_for_no_difference(figure: Figure, ratio: float) -> None:
    with pytest.raises(ValueError, match=f"a limit of {figure} is at_"):
        Limit(figure, ratio)


def test_one_worse_limit_decides_and_all_must_hold() -> None:
    same, more, unsure = [1.0] * 6, [1.2] * 6, [0.9, 1.2, 1.0, 1.1, 1.0, 1.1]
    assert judged(same, same).answer == "not worse"
    assert judged(same, unsure).answer == "cannot tell"
    assert judged(unsure, more).answer == "worse"
    assert judged().answer == "cannot tell"
    # Each pooled run is a look.
    twice = judged(same, same, same, looks=2)
    assert (twice.answer, twice.launches) == ("cannot tell", 7)


@pytest.mark.parametrize(("limits", "launches"), [(1, 6), (2, 6), (3, 6), (4, 7), (10, 8)])
def test_how_many_launches_so_many_limits_take(limits: int, launches: int) -> None:
    assert needed(gate.confidence_of(limits)) == launches
    same = [[1.0] * launches] * limits
    assert judged(*same).answer == "not worse"
    [first, *_] = judged(*[one[1:] for one in same]).checks
    assert first.answer == "cannot tell"
    assert first.launches == launches
    assert f"takes {launches}" in first.why


def test_values_of_nothing_and_of_zero_are_not_judged() -> None:
    [none] = judged([]).checks
    assert none.why == "no round has a valid trial of base and of candidate that tells cpu"
    assert (none.base, none.ratio, none.answer) == (None, None, "cannot tell")
    zero = gate.check(Asked("x", LOAD, CPU, Values([0.0] * 6, [1.0] * 6, paired=True)), 0.95)
    assert (zero.answer, zero.why) == ("cannot tell", "cpu of 0 has no ratio")


def row(mode: Mode, launch: int, **changes: object) -> Row:
    one = judged_row("run", measurement(record(plan(mode, launch=launch))))
    known = {"valid": True, "cpu_server_us": 50.0, **changes}
    return dataclasses.replace(one, **known)


GONE = {"valid": False, "invalid_reasons": FAILED_ITSELF[-1]}


def fails(per_mille: int) -> dict[str, object]:
    """So many of 1,000 requests."""
    return {"window_ok": 1000 - per_mille, "window_http_errors": per_mille, "window_lost": 0}


def lane(mode: Mode, arm: str, count: int = 6, **changes: object) -> Side:
    """Six launches, of which the first `count` have these changes."""
    rows = [row(mode, n, arm=arm, **(changes if n <= count else {})) for n in range(1, 7)]
    return f"run:a@{arm}", rows


def checks_of(base: Side, candidate: Side) -> dict[Figure, Check]:
    asked = gate.of_loads([(base, candidate)], LIMITS, lambda row: 1e9)
    return {check.limit.figure: check for check in gate.judge("a", "b", asked).checks}


def of_loads(base: Side, candidate: Side) -> dict[Figure, Answer]:
    return {figure: check.answer for figure, check in checks_of(base, candidate).items()}


def goodput(base: Side, candidate: Side) -> Answer:
    return of_loads(base, candidate)["goodput"]


def p99(base: Side, candidate: Side) -> Answer:
    return of_loads(base, candidate)["p99"]


# Sides of a closed and of an open load to which nothing happened.
CLOSED, OPEN = lane("closed", "x"), lane("open", "x")


def test_a_closed_load_is_judged_on_goodput_an_open_one_on_p99_and_both_on_cost() -> None:
    same: Answer = "not worse"
    assert of_loads(CLOSED, lane("closed", "y")) == {"goodput": same, "cpu": same, "memory": same}
    slow, dear = lane("open", "y", p99_ms=300.0), lane("open", "y", cpu_server_us=60.0)
    assert of_loads(OPEN, slow) == {"p99": "worse", "cpu": same, "memory": same}
    assert of_loads(OPEN, dear) == {"p99": same, "cpu": "worse", "memory": same}


# Of six against none of six, 4 are chance with a probability of 0.03, and 3 with 0.09.
@pytest.mark.parametrize(("broken", "answer"), [(4, "worse"), (3, "cannot tell")])
def test_a_candidate_that_fails_in_most_launches_is_worse(broken: int, answer: Answer) -> None:
    side = lane("open", "y", broken, **GONE)
    assert p99(OPEN, side) == answer
    # Of a load that broke the base, too, nothing is known, nor where it did so once.
    assert p99(lane("open", "x", broken, **GONE), side) == "cannot tell"
    assert p99(lane("open", "x", 1, **GONE), side) == "cannot tell"


@pytest.mark.parametrize(
    ("base", "candidate", "answer"),
    [
        (3, 3, "not worse"),
        (3, 2, "not worse"),
        (0, 1, "cannot tell"),
        (1, 2, "cannot tell"),
        (1, 6, "worse"),
        (0, 4, "worse"),
        (0, 3, "cannot tell"),
    ],
)
def test_launches_with_errors_on_both_sides(base: int, candidate: int, answer: Answer) -> None:
    sides = (lane("closed", arm, n, **fails(300)) for arm, n in (("x", base), ("y", candidate)))
    assert goodput(*sides) == answer


def test_one_bad_launch_of_the_base_does_not_switch_p99_off_and_few_answers_do_not() -> None:
    base = lane("open", "x", 1, **fails(30))
    assert p99(base, lane("open", "y", p99_ms=900.0)) == "cannot tell"
    assert p99(OPEN, lane("open", "y", p99_ms=None, **fails(30))) == "worse"


def test_quick_errors_are_no_quick_answers() -> None:
    # 3 of 100 fail, at once.
    quick = {**fails(30), "p99_ms": 150.0}
    assert p99(OPEN, lane("open", "y", **quick)) == "worse"
    # Where the base fails, too, nothing is known of the latencies of its work.
    both = lane("open", "x", **quick), lane("open", "y", **quick)
    of, *_ = gate.of_loads([both], LIMITS, "p99_ms")
    assert of.limit == GOODPUT
    assert of.note == "goodput instead of p99: 3.0% of the base's requests fail"
    # Without a limit of goodput the one of p99 does not vanish.
    without = {figure: limit for figure, limit in LIMITS.items() if figure != "goodput"}
    untold, *_ = gate.judge("a", "b", gate.of_loads([both], without, "p99_ms")).checks
    assert (untold.limit.figure, untold.answer) == ("p99", "cannot tell")
    takes = "so it takes a limit of goodput in"
    assert untold.why.startswith(f"3.0% of the base's requests fail, {takes}")


def test_a_p99_counts_requests_that_got_no_answer() -> None:
    """9,950 answers and 50 requests without one: p99 is the answer of rank 9,900, not 9,851."""
    hung = {"window_ok": 9950, "window_http_errors": 0, "window_lost": 50, "p99_ms": 220.0}
    assert p99(OPEN, lane("open", "y", **hung, slo_p99_ms=300.0)) == "worse"
    assert p99(OPEN, lane("open", "y", **hung, slo_p99_ms=225.0)) == "not worse"
    # What is in part the generator's own is not judged.
    for late_ms, answer in ((100.0, "cannot tell"), (29.0, "worse")):
        assert p99(OPEN, lane("open", "y", p99_ms=300.0, late_p99_ms=late_ms)) == answer


def test_a_think_time_of_the_generator_passes_no_candidate() -> None:
    """100 connections, 100 a second: Z = 0.8 s and R = 0.2 s. With R = 0.24 s it is 4 % less in
    goodput, which the limit allows, and 17 % less without Z."""
    base = lane("closed", "x", achieved_rps=100.0, think_ms=800.0)
    slow = lane("closed", "y", achieved_rps=100 / 1.04, think_ms=800.0)
    check = checks_of(base, slow)["goodput"]
    assert (check.answer, check.launches) == ("cannot tell", None)
    assert check.why.endswith("without it the interval is [0.833, 0.833]")
    # As slow without it, or with as much of a cycle: nothing hides.
    assert goodput(base, lane("closed", "y", achieved_rps=80.0)) == "worse"
    assert goodput(base, lane("closed", "y", achieved_rps=99.0, think_ms=808.0)) == "not worse"


def test_all_loads_of_all_lanes_and_runs_share_what_chance_may_say() -> None:
    # Of six against none of six, 4 are chance with a probability of 0.03.
    pair = OPEN, lane("open", "y", 4, **GONE)

    def answer(lanes: int, looks: int = 1) -> Answer:
        asked = gate.of_loads([pair] * lanes, LIMITS, lambda row: 1e9, looks)
        return gate.judge("a", "b", asked).checks[0].answer

    assert [answer(1), answer(2), answer(1, looks=2)] == ["worse", "cannot tell", "cannot tell"]


def test_quick_errors_of_a_closed_load_cost_no_goodput_and_are_worse() -> None:
    # 3 of 10 fail at once, and the clients come again: as many good answers as before.
    failing = lane("closed", "y", **fails(300))
    assert goodput(CLOSED, failing) == "worse"
    # Fewer than half of its launches are no pass, and none where the base fails, too.
    assert goodput(CLOSED, lane("closed", "y", 2, **fails(300))) == "cannot tell"
    assert goodput(lane("closed", "x", **fails(300)), failing) == "not worse"
    # A launch of the base with some errors does not switch it off, and what is usual of it counts.
    assert goodput(lane("closed", "x", 1, **fails(15)), failing) == "worse"
    assert goodput(lane("closed", "x", **fails(8)), lane("closed", "y", **fails(15))) == "not worse"
    assert goodput(CLOSED, lane("closed", "y", **fails(15))) == "worse"
    # Nothing else passes at that load, and so few launches prove nothing.
    assert of_loads(CLOSED, failing)["cpu"] == "cannot tell"
    for count, answer in ((2, "cannot tell"), (3, "worse")):
        assert goodput(*((name, rows[:count]) for name, rows in (CLOSED, failing))) == answer


def test_one_launch_that_ends_is_no_pass_though_the_others_would_do() -> None:
    base = "run:a@x", [row("closed", n, arm="x") for n in range(1, 9)]
    rows = [row("closed", n, arm="y") for n in range(1, 9)]
    rows[3] = dataclasses.replace(rows[3], **GONE)
    check = checks_of(base, ("run:a@y", rows))["goodput"]
    assert check.answer == "cannot tell"
    assert "1 of 8 launches of the candidate, none of the base" in check.why
    # What others did to the lab is not the candidate's.
    reasons = f"{FAILED_ITSELF[-1]}; {NOT_ITS_OWN[0]} during the trial"
    rows[3] = dataclasses.replace(rows[3], invalid_reasons=reasons)
    assert goodput(base, ("run:a@y", rows)) == "not worse"


def test_a_launch_that_says_nothing_is_no_launch_that_did_not_fail() -> None:
    away = {"valid": False, "invalid_reasons": f"{AWAY}: downstream"}
    some, base = lane("closed", "y", 4, **GONE), lane("closed", "x", **away)
    # Of six against none of six that is worse; of a base that was measured once, or never, nothing
    # is known.
    assert goodput(CLOSED, some) == "worse"
    assert goodput((base[0], [CLOSED[1][0], *base[1][1:]]), some) == "cannot tell"
    assert goodput(base, some) == "cannot tell"


def test_what_failed_while_other_work_took_the_cpus_is_not_the_candidates() -> None:
    assert goodput(CLOSED, lane("closed", "y", **GONE, others_cpu=0.5)) == "cannot tell"
    # A launch that went well in spite of it did not fail.
    assert goodput(CLOSED, lane("closed", "y", others_cpu=0.5)) == "not worse"
    _, few = lane("closed", "y", 1, **fails(300), others_cpu=0.5)
    assert gate.failed_more(CLOSED[1], few, Cell.of(few[1]), 0.05) == ("", "")


def overloaded(arm: str, rps: float, **changes: object) -> Side:
    """An open load of 450/s of which so many were answered, with a p99 of that backlog."""
    p99_ms = 10_000.0 * (1 - rps / 450)
    of = {"overloaded": True, "achieved_rps": rps, "p99_ms": p99_ms}
    return lane("open", arm, **{**of, **changes})


def test_of_overloaded_sides_goodput_is_judged_and_not_how_long_the_run_was() -> None:
    base = overloaded("x", 225.0)
    # 8 % less is a p99 that is 8 % longer, which the limit of p99 allows.
    [first, *_] = gate.of_loads([(base, overloaded("y", 207.0))], LIMITS, "cpu_server_us")
    assert first.limit == GOODPUT
    assert first.note.startswith("goodput instead of p99: both sides were overloaded, and p99")
    assert goodput(base, overloaded("y", 207.0)) == "worse"
    # 0.5 % less of one that is nearly kept is a p99 that is a third longer.
    assert goodput(overloaded("x", 443.0), overloaded("y", 441.0)) == "not worse"
    # A candidate that keeps up beside a base that does not is better by its p99, and one that does
    # not beside a base that does is worse by it.
    assert p99(base, lane("open", "y")) == "not worse"
    assert p99(OPEN, overloaded("y", 207.0)) == "worse"


def test_goodput_of_a_base_that_keeps_up_is_no_pass() -> None:
    """Its p99 is ten times as long, and nobody asks for it."""
    base, slow = lane("open", "x", **fails(30)), lane("open", "y", p99_ms=2000.0, **fails(30))
    check = checks_of(base, slow)["goodput"]
    assert check.answer == "cannot tell"
    assert check.why.startswith("the base answered all that was offered in a launch")
    assert goodput(base, lane("open", "y", achieved_rps=300.0, **fails(30))) == "worse"


def test_a_figure_that_fewer_launches_of_one_side_tell_is_not_judged() -> None:
    """A launch that is quick is late by a larger share of its p99, so the slow ones are left."""
    label, slow = lane("open", "x", late_p99_ms=1.2, p99_ms=13.0)
    quick = [dataclasses.replace(each, p99_ms=8.0) for each in slow[:3]]
    candidate = lane("open", "y", late_p99_ms=1.2, p99_ms=13.0)
    checks = checks_of((label, [*quick, *slow[3:]]), candidate)
    assert (checks["p99"].answer, checks["cpu"].answer) == ("cannot tell", "not worse")
    why = checks["p99"].why
    assert "3 of 6 launches of the base (3 lost) and 0 of 6 launches of the candidate" in why


def test_a_candidate_that_mends_errors_costs_more_and_is_not_worse_for_it() -> None:
    base = lane("closed", "x", cpu_server_us=68.0, **fails(400))
    found = of_loads(base, lane("closed", "y", cpu_server_us=100.0))
    assert found == {"goodput": "not worse", "cpu": "cannot tell", "memory": "cannot tell"}


def test_the_fewest_launches_are_not_said_to_tell() -> None:
    [one] = judged([1.0]).checks
    assert (one.launches, one.fewest) == (6, True)
    # Right at the limit no number of launches is enough.
    [one] = judged([1.049, 1.051, 1.05, 1.05, 1.05]).checks
    assert (one.launches, one.fewest) == (6, True)
    [one] = judged([1.049, 1.051, 1.05, 1.05, 1.05, 1.05]).checks
    assert (one.answer, one.launches, one.fewest) == ("cannot tell", None, False)


def test_invalid_trials_never_count_and_a_side_that_loses_more_of_them_is_not_judged() -> None:
    base = "run:a@x", [row("closed", n, arm="x") for n in range(1, 10)]
    rows = [row("closed", n, arm="y", cpu_server_us=60.0) for n in range(1, 10)]
    wrong = [dataclasses.replace(each, cpu_server_us=1.0, valid=False) for each in rows]
    assert of_loads(base, ("run:a@y", [*wrong[:1], *rows[1:]]))["cpu"] == "worse"
    checks = checks_of(base, ("run:a@y", [*wrong[:3], *rows[3:]]))
    assert {check.answer for check in checks.values()} == {"cannot tell"}
    assert "which launches were left out may decide" in checks["cpu"].why


def test_loads_of_one_side_only_and_figures_without_a_limit_are_not_judged() -> None:
    # A candidate that gives way is worse whatever has a limit.
    gone = gate.of_loads([(CLOSED, lane("closed", "y", **GONE))], {"cpu": CPU}, "p99_ms")
    [check] = gate.judge("a", "b", gone).checks
    assert (check.limit, check.answer) == (CPU, "worse")
    assert gate.of_loads([(OPEN, lane("closed", "y"))], LIMITS, "p99_ms") == []
    [asked] = gate.of_loads([(OPEN, lane("open", "y"))], {"cpu": CPU}, "p99_ms")
    assert (asked.limit, asked.load) == (CPU, Cell.of(row("open", 1)))


# --- how often it is right: seeded launches, so each run of a test counts the same ---------------


def gates(
    ratios: Sequence[float], launches: int, spread: float = SPREAD, limit: float = 1.05
) -> dict[Answer, float]:
    """The shares of the answers of gates whose limits have these true ratios: of each side a value
    a launch, lognormal, so that the ratio of a pair scatters by `spread`."""
    rng = np.random.default_rng([launches, round(1000 * spread), *(round(1e4 * r) for r in ratios)])
    of = Limit("cpu", limit)
    answers = [
        gate.judge(
            "a",
            "b",
            [
                Asked("x", LOAD, of, Values(*np.exp(sides).tolist(), paired=True))
                for ratio in ratios
                for sides in [_launches(rng, launches, spread, ratio)]
            ],
        ).answer
        for _ in range(SIMULATIONS)
    ]
    every: tuple[Answer, ...] = ("worse", "cannot tell", "not worse")
    return {one: answers.count(one) / SIMULATIONS for one in every}


def _launches(rng: Generator, count: int, spread: float, ratio: float) -> NDArray[np.float64]:
    """The logarithms of both sides."""
    sides = rng.normal(0, spread / math.sqrt(2), (2, count))
    sides[1] += math.log(ratio)
    return sides


@pytest.mark.parametrize("spread", [0.02, 0.05, 0.1])
def test_a_server_against_itself_fails_in_at_most_one_gate_of_twenty(spread: float) -> None:
    assert gates([1.0, 1.0, 1.0], 6, spread)["worse"] <= 0.05


def test_at_its_limits_a_gate_fails_in_at_most_one_of_twenty() -> None:
    # All six ratios of one limit are beyond it: 3 / 64, and three standard errors of it.
    assert gates([1.05, 1.05, 1.05], 6)["worse"] <= 3 / 64 + 0.02
    assert gates([1.05, 1.0, 1.0], 6)["not worse"] <= 0.05


# As docs/gate.md has it.
LAUNCHES = {0.02: 6, 0.03: 9, 0.05: 20}


@pytest.mark.parametrize("spread", LAUNCHES)
def test_ten_per_cent_more_cpu_is_caught_in_nine_of_ten(spread: float) -> None:
    assert gates([1.0, 1.1, 1.0], LAUNCHES[spread], spread)["worse"] >= 0.9
    if LAUNCHES[spread] > 6:
        assert gates([1.0, 1.1, 1.0], 6, spread)["worse"] < 0.9


@pytest.mark.parametrize("is_paired", [True, False])
def test_the_launches_that_are_asked_for_tell_in_nine_of_ten(is_paired: bool) -> None:
    # Six launches that scatter by exactly 4 %, and then as many as these ask for.
    six = np.array([-1.5, -0.9, -0.2, 0.2, 0.9, 1.5])
    six *= 0.04 / six.std(ddof=1)
    sides = [0.0 * six, six] if is_paired else [six, six]
    few = Values(*np.exp(sides).tolist(), paired=is_paired)
    launches = gate.launches_for(few, 1.1, 1.05, 0.95)
    assert launches is not None
    rng = np.random.default_rng(7)

    def told() -> Answer:
        a, b = rng.normal(0, 0.04, (2, launches))
        logs = [0.0 * a if is_paired else a, b + math.log(1.1)]
        values = Values(*np.exp(logs).tolist(), paired=is_paired)
        return gate.check(Asked("x", LOAD, CPU, values), 0.95).answer

    # Unpaired intervals take long to compute.
    count = 500 if is_paired else 100
    assert [told() for _ in range(count)].count("worse") / count >= 0.87


def test_a_ratio_at_its_limit_asks_for_no_launches() -> None:
    few = paired([1.04, 1.06, 1.03, 1.07, 1.05, 1.05])
    assert gate.launches_for(few, 1.05, 1.05, 0.95) is None
    assert gate.launches_for(few, 1.0501, 1.05, 0.95) is None
    assert gate.launches_for(few, 1.09, 1.05, 0.95) is not None
    [check] = judged([1.0, 1.12, 1.01, 1.1, 1.02, 1.09]).checks
    assert check.answer == "cannot tell"
    assert check.why == "the interval reaches across the limit"
