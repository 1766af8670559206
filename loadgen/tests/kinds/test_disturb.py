"""Spikes and scripted faults: their trials, and recovery on seconds whose recovery is known."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lab.errors import WordError
from lab.kinds.disturb import FAULTS, SPIKE, Faults, Steady, calm_problem, faults_of, recoveries
from lab.kinds.kind import Kind, Outcome
from lab.load.engines.histogram import Histogram
from lab.load.engines.pacer import PACKED, Pacer
from lab.model import (
    Disturbance,
    Experiment,
    Finding,
    NotFound,
    Peak,
    Recovered,
    Recoveries,
    Row,
    ScriptedToxic,
    Spike,
    ToxicStep,
    TrialPlan,
)
from support.altered import invalid
from support.felt import PEAKS, WINDOW, felt, keep_trial, planned, second, trial
from support.pacer import counted
from support.planned import all_of, experiment, planner

STEADY = Steady(tolerance=0.25, steady_s=3)
SPIKES = Spike(900, None, calm_s=10, peak_s=5, repeats=2, tolerance=0.25, steady_s=3)
STEPS = (
    ToxicStep(10, {"TYPE": "latency", "LATENCY": "300"}),
    ToxicStep(15, {"NAME": "latency", "REMOVE": "yes"}),
    ToxicStep(25, {"TYPE": "down"}),
    ToxicStep(30, {"TYPE": "up"}),
)
# As they really were, with a warm-up of 10 s before the window.
MADE = tuple(
    ScriptedToxic(10.0 + step.at_s, 10.0 + step.at_s, step.text, clear=at % 2 == 1)
    for at, step in enumerate(STEPS)
)


def of(kind: Kind, **changes: object) -> Experiment:
    own = SPIKES if kind is SPIKE else Faults(0.25, 3, steps=STEPS)
    whole = {"kind": kind.name, "own": own, "modes": ("open",), "engines": ("pacer",)}
    return experiment(**{**whole, "duration_s": SPIKES.total_s, **changes})


def plans(kind: Kind, **changes: object) -> list[TrialPlan]:
    return all_of(kind.design(planner(of(kind, **changes), Pacer())))


@pytest.mark.parametrize("kind", [SPIKE, FAULTS])
def test_each_server_and_launch_has_a_trial_with_its_disturbances(kind: Kind) -> None:
    first, other = plans(kind)
    assert (first.trial, other.trial) == ("01-a-open-c100", "02-b-open-c100")
    assert (first.duration_s, first.offered_rps, first.engine) == (40, 148, "pacer")
    assert bool(first.spike) == (kind is SPIKE)
    assert first.script == (() if kind is SPIKE else STEPS)
    assert [plan.server for plan in plans(kind, launches=2)] == ["a", "b", "b", "a"]
    with pytest.raises(WordError, match="RATE=auto"):
        plans(kind, routes=("/compute",))


@pytest.mark.parametrize(
    ("changes", "extra_rps"),
    [
        # 900 / 1.2 / (2.5 × 0.2 s).
        ({}, 1500),
        # As much per connection as the load beside it.
        ({"rate_rps": 70}, 630),
        ({"own": Spike(900, 55, 10, 5, 2, 0.25, 3)}, 55),
    ],
)
def test_the_rate_of_a_spike(changes: dict[str, Any], extra_rps: int) -> None:
    assert {plan.spike and plan.spike.extra_rps for plan in plans(SPIKE, **changes)} == {extra_rps}


def test_a_fault_lasts_until_nothing_of_the_script_is_left() -> None:
    steps = (
        ScriptedToxic(20.0, 20.1, "slow", clear=False),
        ScriptedToxic(22.0, 22.1, "down", clear=False),
        ScriptedToxic(24.0, 24.1, "up", clear=False),
        ScriptedToxic(26.0, 26.1, "remove slow", clear=True),
        ScriptedToxic(30.0, 30.1, "down", clear=False),
    )
    assert [*faults_of(steps)] == [(Peak(20.0, 26.1), ("slow", "down", "up"))]


def test_recovery_is_counted_from_the_spikes_end_to_the_first_of_the_steady_seconds() -> None:
    slow = dict.fromkeys(range(21, 29), 900.0) | {30: 400.0} | dict.fromkeys(range(35, 40), 300.0)
    calm, (first, other) = recoveries(felt(slow), WINDOW, PEAKS, STEADY)
    assert (calm.p95_ms, calm.limit_ms) == pytest.approx((200, 250), rel=0.001)
    assert (calm.seconds, calm.above) == (10, 0)
    # 29 is calm, 30 is not, 31 32 33 are: recovered at 31, 6 s after 25.
    assert (first.after_s, first.worst_ms) == (6.0, pytest.approx(900, rel=0.001))
    assert (first.watched_s, first.left, first.above) == (10.0, 1, 0)
    # Slow during the spike only: as before at once.
    assert (other.after_s, other.worst_ms) == (0.0, pytest.approx(300, rel=0.001))
    # A second without answers is not calm.
    silent = dict.fromkeys(range(22, 27), None)
    _, (first, _) = recoveries(felt(silent), WINDOW, PEAKS, STEADY)
    assert (first.after_s, first.worst_ms) == (2.0, None)
    # A spike within a second is felt in it and ends with it: 26, 27 and 28 are steady.
    within = (Peak(20.4, 25.6), PEAKS[1])
    slow = {20: 900.0} | dict.fromkeys(range(21, 26), 400.0)
    _, (first, _) = recoveries(felt(slow), WINDOW, within, STEADY)
    assert (first.after_s, first.watched_s) == (pytest.approx(0.4), pytest.approx(9.4))
    assert first.worst_ms == pytest.approx(900, rel=0.001)


def a_tenth_at(us: int) -> Histogram:
    """A second of which a tenth is slower."""
    return counted({200_000: 360, us: 40})


def over(first: int, end: int, ms: float, count: int = 400) -> dict[int, Histogram]:
    return dict.fromkeys(range(first, end), second(ms, count))


DRAWN, RANDOM = {"drawn": True}, {"random": True}
# The calm's own worst second is 30 % above its p95, by 10 % of its answers.
UNEVEN = {15: a_tenth_at(260_000)}


@pytest.mark.parametrize(
    ("changes", "given", "after_s"),
    [
        # Within the tolerance, and above it.
        (over(25, 35, 249.0), {}, 0.0),
        (over(25, 35, 251.0), {}, None),
        # Half of the requests are reset from 25 to 29: the others are as quick as ever.
        (over(25, 30, 200.0, 200), {}, 5.0),
        # A few are missing, for long.
        (over(25, 35, 200.0, 378), {}, None),
        # A pause: 50 ms without answers at the end of 26, which come in 27.
        (over(26, 27, 200.0, 380) | over(27, 28, 200.0, 420), {}, 0.0),
        # What 27 catches up does not make up for a 26 that answered too little.
        (over(26, 27, 200.0, 300) | over(27, 28, 200.0, 500), {}, 2.0),
        # Two steady seconds before the next spike are not three.
        (over(25, 33, 900.0), {}, None),
        # Drawn delays vary the p95 of the calm, too.
        (UNEVEN | over(25, 30, 255.0) | over(30, 31, 262.0), {}, 6.0),
        (UNEVEN | over(25, 30, 255.0) | over(30, 31, 262.0), DRAWN, 0.0),
        (UNEVEN | over(25, 30, 265.0), DRAWN, 5.0),
        # At random 400 a second, give or take 60: three deviations. Seconds on end have less room.
        (over(26, 27, 200.0, 330), {}, 2.0),
        (over(26, 27, 200.0, 330), RANDOM, 0.0),
        (over(25, 30, 200.0, 330), RANDOM, 3.0),
    ],
)
def test_steady_seconds_are_as_the_calm(
    changes: dict[int, Histogram], given: dict[str, bool], after_s: float | None
) -> None:
    _, found = recoveries({**felt(), **changes}, WINDOW, PEAKS, STEADY, **given)
    assert found[0].after_s == after_s


def test_seconds_above_the_limit_are_counted_in_the_calm_and_after_it() -> None:
    # One of its seconds is slow, by 4 % of its answers in all: the p95 of the calm is not.
    calm, _ = recoveries(felt() | {15: a_tenth_at(900_000)}, WINDOW, PEAKS, STEADY)
    assert (calm.seconds, calm.above) == (10, 1)
    # What comes again after the steady seconds is counted.
    _, (first, _) = recoveries(felt() | over(28, 35, 900.0), WINDOW, PEAKS, STEADY)
    assert (first.after_s, first.left, first.above) == (0.0, 7, 7)


@pytest.mark.parametrize(
    ("per_second", "offered", "end_s", "random", "code"),
    [
        (400, 400, 20.0, False, None),
        (387, 400, 20.0, False, "no-calm"),
        # Of requests at random fewer may come: three standard deviations of 4,000.
        (380, 400, 20.0, True, None),
        (360, 400, 20.0, True, "no-calm"),
        (0, 400, 20.0, False, "no-calm"),
        # Too few answers a second have no p95, and without a second there is no calm.
        (199, 199, 20.0, False, "calm-few-answers"),
        (400, 400, 10.5, False, "calm-few-answers"),
    ],
)
def test_a_calm_keeps_up_with_the_load(
    per_second: int, offered: int, end_s: float, random: bool, code: str | None
) -> None:
    problem = calm_problem(over(10, 20, 200.0, per_second), (10.0, end_s), offered, random)
    assert (problem.code if problem else None) == code
    if problem and code == "calm-few-answers":
        assert problem.values["needed"] == 200


def kept(
    run_dir: Path,
    seconds: Mapping[int, Histogram],
    *peaks: Peak,
    name: str = "01-a",
    statuses: Mapping[int, str] | None = None,
    script: tuple[ScriptedToxic, ...] = (),
    **cells: object,
) -> Row:
    """A trial's row with these cells; its seconds are on the disk."""
    plan = planned(name, spike=SPIKES if peaks else None, script=STEPS if script else ())
    keep_trial(run_dir / "raw" / name, plan, seconds, statuses, peaks=peaks, script=script)
    return trial(name, **cells)


def spikes(run_dir: Path, *rows: Row, **changes: object) -> list[Finding]:
    return [*SPIKE.findings(Outcome(of(SPIKE, servers=("a",), **changes), rows, run_dir))]


def faults(run_dir: Path, seconds: Mapping[int, Histogram], **changes: Any) -> list[Finding]:
    row = kept(run_dir, seconds, **{"script": MADE, **changes})
    return [*FAULTS.findings(Outcome(of(FAULTS, servers=("a",)), [row], run_dir))]


def recovered(findings: list[Finding]) -> list[Recovered]:
    return [finding for finding in findings if isinstance(finding, Recovered)]


def median_of(
    run_dir: Path,
    count: int,
    why: Mapping[int, str] | None = None,
    slow: Callable[[int], Mapping[int, float | None]] = lambda launch: {},
) -> Recoveries:
    """The median of launches, of which some are invalid for a reason."""
    rows = []
    for launch in range(1, count + 1):
        reason = (why or {}).get(launch, "")
        cells = {"launch": launch, "valid": not reason, "invalid_reasons": reason}
        rows.append(kept(run_dir, felt(slow(launch)), *PEAKS, name=f"{launch:02}-a", **cells))
    median = spikes(run_dir, *rows, launches=count)[-1]
    assert isinstance(median, Recoveries)
    return median


def test_findings_are_each_spike_and_the_median(tmp_path: Path) -> None:
    findings = spikes(tmp_path, kept(tmp_path, felt() | over(20, 29, 900.0), *PEAKS))
    first, other = recovered(findings)
    assert (first.name, first.value, first.unit) == ("recovery time, spike 1", 4.0, "s")
    assert first.disturbance == Disturbance("spike", 1, 2, 5.0)
    assert (first.calm.p95_ms, first.calm.limit_ms) == pytest.approx((200, 250), rel=0.001)
    assert first.recovery.worst_ms == pytest.approx(900, rel=0.001)
    assert (first.felt.errors, first.felt.answers, other.value) == (0, 15 * 400, 0.0)
    median = findings[-1]
    assert (median.name, median.value, median.low) == ("recovery time, median", 2.0, None)


def test_error_answers_are_no_recovery_however_quick(tmp_path: Path) -> None:
    """A breaker that opens in the spike, and refuses from then on within 2 ms."""
    refused = dict.fromkeys(range(21, 50), "503")
    row = kept(tmp_path, felt() | over(21, 50, 2.0), *PEAKS, statuses=refused)
    first, *_ = recovered(spikes(tmp_path, row))
    assert (first.value, first.recovery.worst_ms, first.felt.errors) == (None, None, 14 * 400)


@pytest.mark.parametrize(
    ("count", "why", "median"),
    [
        # Seven of which one may be anything have no interval; nine have.
        (7, {1: "generator-late"}, (0.0, None, 6, 7, 0)),
        (9, {1: "generator-late"}, (0.0, 0.0, 8, 9, 0)),
        # A launch in which the server failed did not recover.
        (7, {3: "jvm-restarted", 4: "generator-late"}, (0.0, None, 5, 7, 1)),
        (1, {1: "jvm-restarted"}, (None, None, 0, 1, 1)),
    ],
)
def test_launches_that_say_nothing_and_launches_that_failed(
    tmp_path: Path, count: int, why: dict[int, str], median: tuple[object, ...]
) -> None:
    found = median_of(tmp_path, count, why)
    assert (found.value, found.low, found.recovered, found.launches, found.failed) == median


def test_six_launches_have_an_interval(tmp_path: Path) -> None:
    def slow(launch: int) -> dict[int, float | None]:
        return {at: 900.0 for start in (25, 40) for at in range(start, start + launch)}

    median = median_of(tmp_path, 6, slow=slow)
    assert (median.value, median.low, median.high, median.count) == (3.5, 1.0, 6.0, 12)


@pytest.mark.parametrize(
    ("cells", "peaks", "seconds", "code"),
    [
        (invalid("toxics-touched"), PEAKS, felt(), "toxics-touched"),
        ({}, (), felt(), "no-disturbance"),
        ({}, PEAKS, over(10, 50, 200, 300), "no-calm"),
        ({}, PEAKS, {}, "no-calm"),
        ({}, PEAKS, None, "damaged"),
    ],
    ids=["invalid", "no spike", "too few answers", "no answers", "answers that are lost"],
)
def test_what_has_no_recovery_time_says_why(
    tmp_path: Path,
    cells: dict[str, object],
    peaks: tuple[Peak, ...],
    seconds: dict[int, Histogram] | None,
    code: str,
) -> None:
    row = kept(tmp_path, felt() if seconds is None else seconds, *peaks, **cells)
    if seconds is None:
        (tmp_path / "raw" / row.trial / PACKED).unlink()
    (only,) = spikes(tmp_path, row)
    assert isinstance(only, NotFound)
    assert [problem.code for problem in only.problems] == [code]


def test_findings_are_each_fault_with_its_errors_and_the_median(tmp_path: Path) -> None:
    refused = dict.fromkeys(range(35, 40), "502")
    findings = faults(tmp_path, felt() | over(20, 27, 500.0), statuses=refused)
    first, down = recovered(findings)
    assert (first.name, first.value) == ("recovery time, fault 1", 2.0)
    assert first.disturbance == Disturbance("fault", 1, 2, 5.0, ("TYPE=latency LATENCY=300",))
    assert (first.felt.errors, first.felt.slowest_ms) == (0, pytest.approx(500, rel=0.01))
    assert (down.value, down.felt.errors, down.disturbance.changes) == (0.0, 2000, ("TYPE=down",))
    assert findings[-1].value == 1.0


def test_a_fault_that_leaves_errors_is_not_recovered_and_lost_requests_count(
    tmp_path: Path,
) -> None:
    errors = dict.fromkeys(range(35, 50), "502")
    findings = faults(tmp_path / "errors", felt(), statuses=errors)
    assert (recovered(findings)[1].value, findings[-1].value) == (None, None)
    # Half of the connections are reset until 44: those left are as quick as ever.
    halved = felt() | over(40, 44, 200, 200)
    _, down = recovered(faults(tmp_path, halved, timeouts=7, socket_errors=30))
    assert (down.value, down.felt.timeouts, down.felt.lost) == (4.0, 7, 30)
