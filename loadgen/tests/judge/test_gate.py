"""What a gate says of known values, and how often it is right of simulated launches."""

import copy
import math
from collections.abc import Mapping, Sequence
from datetime import timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

from lab.judge.compare import (
    CONTROL,
    Answer,
    Comparison,
    Figure,
    Limits,
    Overall,
    Place,
    Side,
    Values,
    compare_all,
    launches_for,
    overall,
)
from lab.model import Mode, Row
from support.fakes import judged_row, measurement, plan, record
from support.system import START

CPU = Limits(high=1.05)
LIMITS: dict[Figure, Limits] = {
    "goodput": Limits(low=0.95), "p99": Limits(high=1.1), "cpu": CPU, "memory": Limits(high=1.1),
}  # fmt: skip
SIMULATIONS = 1_000


@pytest.mark.parametrize(
    ("low", "high", "place"),
    [
        (0.5, 1.05, "within"),
        (1.0, 1.0500001, "cannot tell"),
        (1.05, 1.2, "cannot tell"),
        (1.0500001, 1.2, "worse"),
    ],
)
def test_the_whole_interval_decides(low: float, high: float, place: Place) -> None:
    assert CPU.place(low, high, "cpu") == place
    # Of what more is better, with everything turned over.
    assert Limits(low=1 / 1.05).place(1 / high, 1 / low, "goodput") == place


def row(mode: Mode, launch: int, **changes: object) -> Row:
    trial = judged_row("run", measurement(record(plan(mode, launch=launch))))
    known = {"valid": True, "cpu_server_us": 50.0, **changes}
    return copy.replace(trial, **known)


GONE = {"valid": False, "invalid_reasons": "mostly-errors"}


def fails(per_mille: int) -> dict[str, object]:
    """So many of 1,000 requests."""
    return {"window_ok": 1000 - per_mille, "window_http_errors": per_mille, "window_lost": 0}


def lane(mode: Mode, arm: str, count: int = 6, **changes: object) -> Side:
    """Six launches, of which the first `count` have these changes."""
    rows = [row(mode, n, arm=arm, **(changes if n <= count else {})) for n in range(1, 7)]
    return f"run:a@{arm}", rows


def answers_of(
    base: Side, candidate: Side, limits: Mapping[Figure, Limits] = LIMITS
) -> dict[Figure, Answer]:
    [found] = compare_all([(base, candidate)], limits, lambda row: 1e9)
    return {answer.question.figure: answer for answer in found.answers}


def places(base: Side, candidate: Side) -> dict[Figure, Place]:
    return {figure: answer.place for figure, answer in answers_of(base, candidate).items()}


def goodput(base: Side, candidate: Side) -> Place:
    return places(base, candidate)["goodput"]


def p99(base: Side, candidate: Side) -> Place:
    return places(base, candidate)["p99"]


# Sides of a closed and of an open load to which nothing happened.
CLOSED, OPEN = lane("closed", "x"), lane("open", "x")


def test_a_closed_load_is_judged_on_goodput_an_open_one_on_p99_and_both_on_cost() -> None:
    same: Place = "within"
    assert places(CLOSED, lane("closed", "y")) == {"goodput": same, "cpu": same, "memory": same}
    slow, dear = lane("open", "y", p99_ms=300.0), lane("open", "y", cpu_server_us=60.0)
    assert places(OPEN, slow) == {"p99": "worse", "cpu": same, "memory": same}
    assert places(OPEN, dear) == {"p99": same, "cpu": "worse", "memory": same}


# Of six against none of six, 4 are chance with a probability of 0.03, and 3 with 0.09.
@pytest.mark.parametrize(("broken", "answer"), [(4, "worse"), (3, "cannot tell")])
def test_a_candidate_that_fails_in_most_launches_is_worse(broken: int, answer: Place) -> None:
    side = lane("open", "y", broken, **GONE)
    assert p99(OPEN, side) == answer
    # Of a load that broke the base, too, nothing is known, nor where it did so once.
    assert p99(lane("open", "x", broken, **GONE), side) == "cannot tell"
    assert p99(lane("open", "x", 1, **GONE), side) == "cannot tell"


@pytest.mark.parametrize(
    ("base", "candidate", "answer"),
    [
        (3, 3, "within"),
        (3, 2, "within"),
        (0, 1, "cannot tell"),
        (1, 2, "cannot tell"),
        (1, 6, "worse"),
        (0, 4, "worse"),
        (0, 3, "cannot tell"),
    ],
)
def test_launches_with_errors_on_both_sides(base: int, candidate: int, answer: Place) -> None:
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
    first = answers_of(*both)["goodput"]
    assert (first.question.instead, first.why) == ("errors", "kept up")
    # Without a limit of goodput the one of p99 does not vanish.
    without = {figure: limit for figure, limit in LIMITS.items() if figure != "goodput"}
    untold = answers_of(*both, without)["p99"]
    assert (untold.place, untold.why) == ("cannot tell", "no limit")


def test_a_p99_counts_requests_that_got_no_answer() -> None:
    """9,950 answers and 50 requests without one: p99 is the answer of rank 9,900, not 9,851."""
    hung = {"window_ok": 9950, "window_http_errors": 0, "window_lost": 50, "p99_ms": 220.0}
    assert p99(OPEN, lane("open", "y", **hung, slo_p99_ms=300.0)) == "worse"
    assert p99(OPEN, lane("open", "y", **hung, slo_p99_ms=225.0)) == "within"
    # What is in part the generator's own is not judged.
    base = lane("open", "x", raw_p99_ms=220.0, p99_ms=220.0, late_p99_ms=0.0)
    for late_ms, place in ((100.0, "cannot tell"), (29.0, "worse")):
        late = {"p99_ms": 300.0, "raw_p99_ms": 220.0, "late_p99_ms": late_ms}
        assert p99(base, lane("open", "y", **late)) == place


def test_all_loads_of_all_lanes_share_what_chance_may_say() -> None:
    # Of six against none of six, 4 are chance with a probability of 0.03.
    pair = OPEN, lane("open", "y", 4, **GONE)

    def place(lanes: int) -> Place:
        return compare_all([pair] * lanes, LIMITS, lambda row: 1e9)[0].answers[0].place

    assert [place(1), place(2)] == ["worse", "cannot tell"]


def test_quick_errors_of_a_closed_load_cost_no_goodput_and_are_worse() -> None:
    # 3 of 10 fail at once, and the clients come again: as many good answers as before.
    failing = lane("closed", "y", **fails(300))
    assert goodput(CLOSED, failing) == "worse"
    # Fewer than half of its launches are no pass, and none where the base fails, too.
    assert goodput(CLOSED, lane("closed", "y", 2, **fails(300))) == "cannot tell"
    assert goodput(lane("closed", "x", **fails(300)), failing) == "within"
    # A launch of the base with some errors does not switch it off, and what is usual of it counts.
    assert goodput(lane("closed", "x", 1, **fails(15)), failing) == "worse"
    assert goodput(lane("closed", "x", **fails(8)), lane("closed", "y", **fails(15))) == "within"
    assert goodput(CLOSED, lane("closed", "y", **fails(15))) == "worse"
    # Nothing else passes at that load, and so few launches prove nothing.
    assert places(CLOSED, failing)["cpu"] == "cannot tell"
    for count, answer in ((2, "cannot tell"), (3, "worse")):
        assert goodput(*((name, rows[:count]) for name, rows in (CLOSED, failing))) == answer


def test_one_launch_that_ends_is_no_pass_though_the_others_would_do() -> None:
    base = "run:a@x", [row("closed", n, arm="x") for n in range(1, 9)]
    rows = [row("closed", n, arm="y") for n in range(1, 9)]
    rows[3] = copy.replace(rows[3], **GONE)
    answer = answers_of(base, ("run:a@y", rows))["goodput"]
    assert (answer.place, answer.why, answer.facts) == ("cannot tell", "failures", (0, 8, 1, 8))
    # What others did to the lab is not the candidate's.
    reasons = "mostly-errors; wrong-server"
    rows[3] = copy.replace(rows[3], invalid_reasons=reasons)
    assert goodput(base, ("run:a@y", rows)) == "within"


def test_a_launch_that_says_nothing_is_no_launch_that_did_not_fail() -> None:
    away = {"valid": False, "invalid_reasons": "machine-away"}
    some, base = lane("closed", "y", 4, **GONE), lane("closed", "x", **away)
    # Of six against none of six that is worse; of a base that was measured once, or never, nothing
    # is known.
    assert goodput(CLOSED, some) == "worse"
    assert goodput((base[0], [CLOSED[1][0], *base[1][1:]]), some) == "cannot tell"
    assert goodput(base, some) == "cannot tell"


def test_what_failed_while_other_work_took_the_cpus_is_not_the_candidates() -> None:
    assert goodput(CLOSED, lane("closed", "y", **GONE, others_cpu=0.5)) == "cannot tell"
    # A launch that went well in spite of it did not fail.
    assert goodput(CLOSED, lane("closed", "y", others_cpu=0.5)) == "within"


def overloaded(arm: str, rps: float, **changes: object) -> Side:
    """An open load of 450/s of which so many were answered, with a p99 of that backlog."""
    p99_ms = 10_000.0 * (1 - rps / 450)
    of = {"overloaded": True, "achieved_rps": rps, "p99_ms": p99_ms}
    return lane("open", arm, **{**of, **changes})


def test_of_overloaded_sides_goodput_is_judged_and_not_how_long_the_run_was() -> None:
    base = overloaded("x", 225.0)
    # 8 % less is a p99 that is 8 % longer, which the limit of p99 allows.
    first = answers_of(base, overloaded("y", 207.0))["goodput"]
    assert (first.question.instead, first.place) == ("overloaded", "worse")
    # 0.5 % less of one that is nearly kept is a p99 that is a third longer.
    assert goodput(overloaded("x", 443.0), overloaded("y", 441.0)) == "within"
    # A candidate that keeps up beside a base that does not is better by its p99, and one that does
    # not beside a base that does is worse by it.
    assert p99(base, lane("open", "y")) == "within"
    assert p99(OPEN, overloaded("y", 207.0)) == "worse"


def test_goodput_of_a_base_that_keeps_up_is_no_pass() -> None:
    """Its p99 is ten times as long, and nobody asks for it."""
    base, slow = lane("open", "x", **fails(30)), lane("open", "y", p99_ms=2000.0, **fails(30))
    answer = answers_of(base, slow)["goodput"]
    assert (answer.place, answer.why) == ("cannot tell", "kept up")
    assert goodput(base, lane("open", "y", achieved_rps=300.0, **fails(30))) == "worse"


def test_a_figure_that_fewer_launches_of_one_side_tell_is_not_judged() -> None:
    label, rows = lane("open", "x")
    base = label, [copy.replace(each, p99_ms=None) for each in rows[:3]] + rows[3:]
    found = answers_of(base, lane("open", "y"))
    assert (found["p99"].why, found["cpu"].place) == ("left out", "within")
    assert (found["p99"].tries_a.lost, found["p99"].tries_b.lost) == (3, 0)


def test_a_candidate_that_mends_errors_costs_more_and_is_not_worse_for_it() -> None:
    base = lane("closed", "x", cpu_server_us=68.0, **fails(400))
    found = places(base, lane("closed", "y", cpu_server_us=100.0))
    assert found == {"goodput": "within", "cpu": "cannot tell", "memory": "cannot tell"}


def test_invalid_trials_never_count_and_a_side_that_loses_more_of_them_is_not_judged() -> None:
    base = "run:a@x", [row("closed", n, arm="x") for n in range(1, 10)]
    rows = [row("closed", n, arm="y", cpu_server_us=60.0) for n in range(1, 10)]
    wrong = [copy.replace(each, cpu_server_us=1.0, valid=False) for each in rows]
    assert places(base, ("run:a@y", [*wrong[:1], *rows[1:]]))["cpu"] == "worse"
    found = answers_of(base, ("run:a@y", [*wrong[:3], *rows[3:]]))
    assert {answer.why for answer in found.values()} == {"left out"}


def test_loads_of_one_side_only_and_figures_without_a_limit_are_not_judged() -> None:
    # A candidate that gives way is worse whatever has a limit.
    [gone] = answers_of(CLOSED, lane("closed", "y", **GONE), {"cpu": CPU}).values()
    assert (gone.question.figure, gone.place) == ("cpu", "worse")
    assert answers_of(OPEN, lane("closed", "y")) == {}
    assert set(answers_of(OPEN, lane("open", "y"), {"cpu": CPU})) == {"cpu"}


# --- the machine: the control parts as a covariate, and the A/A floor -----------------------------

PARTS = ("cpu_generator_us", "cpu_proxy_us", "cpu_downstream_us")
# How fast the machine was in each launch, in time.
WANDERS = (1.0, 1.08, 0.95, 1.12, 0.9, 1.05, 1.1, 0.97, 1.03,
           0.92, 1.07, 1.0, 0.94, 1.02, 1.1, 0.96, 1.01, 0.93)  # fmt: skip


def machine(
    server: float = 1.0, parts: float = 1.0, power: float = CONTROL, launches: int = 9
) -> tuple[Side, Side]:
    """A base and a candidate in turns on a machine that wanders; the candidate's server and the
    control parts beside it cost so many times as much."""
    sides: dict[str, list[Row]] = {"x": [], "y": []}
    speeds = enumerate(WANDERS)
    for launch in range(1, launches + 1):
        for arm in ("x", "y") if launch % 2 else ("y", "x"):
            minute, slow = next(speeds)
            times = (server, parts) if arm == "y" else (1.0, 1.0)
            each: dict[str, object] = dict.fromkeys(PARTS, 20.0 * slow * times[1])
            cost = 50.0 * slow**power * times[0]
            each["started_at"] = START + timedelta(minutes=minute)
            sides[arm].append(row("closed", launch, arm=arm, cpu_server_us=cost, **each))
    return ("run:a@x", sides["x"]), ("run:a@y", sides["y"])


def test_what_the_machine_did_is_taken_out_of_a_cpu_time() -> None:
    answer = answers_of(*machine(server=1.1))["cpu"]
    assert (answer.place, answer.control.use) == ("worse", "used")
    assert answer.ratio.ratio == pytest.approx(1.1)
    assert answer.ratio.interval.high - answer.ratio.interval.low < 1e-9
    # The raw figure is there, and says nothing.
    assert CPU.place(answer.raw.interval.low, answer.raw.interval.high, "cpu") == "cannot tell"
    assert answer.raw.ratio != pytest.approx(answer.ratio.ratio)
    assert answers_of(*machine())["cpu"].place == "within"


def test_a_candidate_that_makes_the_control_parts_dearer_is_judged_by_the_raw_figure() -> None:
    answer = answers_of(*machine(server=1.1, parts=1.3))["cpu"]
    assert (answer.control.use, answer.ratio) == ("differs", answer.raw)
    # Within the floor it may not be told from the machine; then the raw ratio has to agree.
    assert answers_of(*machine(parts=1.01))["cpu"].control.use == "used"
    answer = answers_of(*machine(server=1.01, parts=0.94))["cpu"]
    assert (answer.control.use, answer.place, answer.why) == ("used", "cannot tell", "raw")
    assert answer.ratio.interval.low > CPU.high > answer.raw.ratio


def test_without_pairs_or_parts_there_is_no_covariate() -> None:
    few = answers_of(*machine(launches=5))["cpu"]
    assert (few.control.use, few.same, few.ratio) == ("no floor", None, few.raw)
    (_, a), (name, b) = machine()
    apart = [copy.replace(trial, run="other") for trial in b]
    answer = answers_of(("run:a", a), ("other:a", apart))["cpu"]
    assert (answer.control, answer.same, answer.ratio) == (None, None, answer.raw)
    b[3] = copy.replace(b[3], cpu_proxy_us=None)
    assert answers_of(("run:a", a), (name, b))["cpu"].control is None


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
    (base, a), (candidate, b) = machine()
    assert answers_of((base, a), (candidate, b))["cpu"].same.count_a == 8
    assert answers_of((base, a[::-1]), (candidate, b[::-1]))["cpu"].same.count_a == 8
    # The base in the third round was measured again after all others: the candidate's launch of
    # that round is no neighbour of the second one.
    a[2] = copy.replace(a[2], started_at=START + timedelta(hours=1))
    assert answers_of((base, a), (candidate, b))["cpu"].same.count_a == 7
    # A B, A B, …: none.
    begun = [copy.replace(trial, started_at=START + timedelta(hours=trial.launch)) for trial in a]
    ended = [
        copy.replace(trial, started_at=START + timedelta(hours=trial.launch + 0.5)) for trial in b
    ]
    assert answers_of((base, begun), (candidate, ended))["cpu"].same is None


# --- how often it is right: seeded launches, so each run of a test counts the same ---------------

BLANK = [[row("closed", launch, arm=arm) for launch in range(1, 31)] for arm in ("x", "y")]
THREE: dict[Figure, Limits] = {"goodput": Limits(low=0.95), "cpu": CPU, "memory": Limits(high=1.05)}


def judged(values: NDArray[np.float64]) -> Comparison:
    """A gate of three limits; values[figure, side, launch]."""
    sides = [
        (
            f"run:{arm}",
            [
                copy.replace(each, achieved_rps=a, cpu_server_us=b, p50_ms=c)
                for each, a, b, c in zip(blank, *values[:, at].tolist(), strict=False)
            ],
        )
        for at, (arm, blank) in enumerate(zip("xy", BLANK, strict=True))
    ]
    return compare_all([(sides[0], sides[1])], THREE, "p50_ms")[0]


def gates(
    ratios: Sequence[float], launches: int, spread: float, count: int = SIMULATIONS
) -> dict[Overall, float]:
    """The shares of the answers of gates whose limits have these true ratios: of each side a value
    a launch, lognormal, so that the ratio of a pair scatters by `spread`."""
    rng = np.random.default_rng([launches, round(1000 * spread), *(round(1e4 * r) for r in ratios)])
    answers = []
    for _ in range(count):
        logs = rng.normal(0, spread / math.sqrt(2), (3, 2, launches))
        logs[:, 1] += np.log(ratios)[:, None]
        answers.append(overall([judged(np.exp(logs))]))
    every: tuple[Overall, ...] = ("worse", "cannot tell", "not worse")
    return {one: answers.count(one) / count for one in every}


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
    launches = launches_for(few, math.log(1.1 / 1.05), 0.95)
    assert launches is not None
    rng = np.random.default_rng(7)

    def place() -> Place:
        b = 1.1 * np.exp(rng.normal(0, 0.04, launches))
        interval = Values([1.0] * launches, b.tolist(), paired=True).ratio(0.95).interval
        return CPU.place(interval.low, interval.high, "cpu")

    assert [place() for _ in range(500)].count("worse") / 500 >= 0.87


def test_a_ratio_at_its_limit_asks_for_no_launches() -> None:
    ratios = [1.04, 1.06, 1.03, 1.07, 1.05, 1.05]
    few = Values([1.0] * 6, ratios, paired=True)
    distances = (0.0, math.log(1.0501 / 1.05), math.log(1.09 / 1.05))
    known = [launches_for(few, distance, 0.95) is not None for distance in distances]
    assert known == [False, False, True]
