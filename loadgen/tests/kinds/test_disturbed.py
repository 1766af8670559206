"""Spikes and scripted faults: their trials, and what is found of each."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lab.errors import WordError
from lab.kinds import disturb
from lab.kinds.disturb import Faults
from lab.kinds.kind import Outcome
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
)
from support.altered import invalid
from support.felt import PEAKS, felt, keep_trial, planned, second, trial
from support.planned import all_of, experiment, planner

SPIKE = Spike(extra=900, extra_rps=None, calm_s=10, peak_s=5, repeats=2, tolerance=0.25, steady_s=3)
STEPS = (
    ToxicStep(10, {"TYPE": "latency", "LATENCY": "300"}),
    ToxicStep(15, {"NAME": "latency", "REMOVE": "yes"}),
    ToxicStep(25, {"TYPE": "down"}),
    ToxicStep(30, {"TYPE": "up"}),
)
# As they really were, with a warm-up of 10 s before the window.
MADE = (
    ScriptedToxic(20.0, 20.0, STEPS[0].text, clear=False),
    ScriptedToxic(25.0, 25.0, STEPS[1].text, clear=True),
    ScriptedToxic(35.0, 35.0, STEPS[2].text, clear=False),
    ScriptedToxic(40.0, 40.0, STEPS[3].text, clear=True),
)


def spiky(**changes: object) -> Experiment:
    whole = {"kind": "spike", "own": SPIKE, "modes": ("open",), "engines": ("pacer",)}
    return experiment(**{**whole, "duration_s": SPIKE.total_s, **changes})


def faulty(**changes: object) -> Experiment:
    whole = {"kind": "faults", "own": Faults(0.25, 3, steps=STEPS), "modes": ("open",)}
    return experiment(**{**whole, "engines": ("pacer",), "duration_s": 40, **changes})


def test_each_server_has_a_trial_of_its_own_load_and_the_spikes_beside_it() -> None:
    order = disturb.design_spike(planner(spiky(), Pacer()))
    plans = all_of(order)
    assert [plan.trial for plan in plans] == ["01-a-open-c100", "02-b-open-c100"]
    assert (plans[0].duration_s, plans[0].offered_rps, plans[0].engine) == (40, 148, "pacer")
    assert order.most == 2
    # Launches alternate.
    plans = all_of(disturb.design_spike(planner(spiky(launches=2), Pacer())))
    assert [plan.server for plan in plans] == ["a", "b", "b", "a"]


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
    plans = all_of(disturb.design_spike(planner(spiky(**changes), Pacer())))
    assert {plan.spike and plan.spike.extra_rps for plan in plans} == {extra_rps}


def test_a_spike_of_what_does_not_wait_needs_a_rate() -> None:
    with pytest.raises(WordError, match="RATE=auto"):
        disturb.design_spike(planner(spiky(routes=("/compute",)), Pacer()))


def test_each_server_has_a_trial_with_the_script() -> None:
    plans = all_of(disturb.design_faults(planner(faulty(), Pacer())))
    assert [plan.trial for plan in plans] == ["01-a-open-c100", "02-b-open-c100"]
    assert all(plan.script == STEPS for plan in plans)
    assert (plans[0].offered_rps, plans[0].duration_s) == (148, 40)


def test_a_fault_lasts_until_nothing_of_the_script_is_left() -> None:
    steps = (
        ScriptedToxic(20.0, 20.1, "slow", clear=False),
        ScriptedToxic(22.0, 22.1, "down", clear=False),
        ScriptedToxic(24.0, 24.1, "up", clear=False),
        ScriptedToxic(26.0, 26.1, "remove slow", clear=True),
        ScriptedToxic(30.0, 30.1, "down", clear=False),
    )
    assert [*disturb.faults_of(steps)] == [(Peak(20.0, 26.1), ("slow", "down", "up"))]


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
    of = planned(name, spike=SPIKE if peaks else None, script=STEPS if script else ())
    keep_trial(run_dir / "raw" / name, of, seconds, statuses, peaks=peaks, script=script)
    return trial(name, **cells)


def spikes(run_dir: Path, *rows: Row, **changes: object) -> list[Finding]:
    return list(
        disturb.findings_of_spikes(Outcome(spiky(servers=("a",), **changes), rows, run_dir))
    )


def recovered(findings: list[Finding]) -> list[Recovered]:
    return [finding for finding in findings if isinstance(finding, Recovered)]


def of_launches(
    run_dir: Path,
    count: int,
    why: Mapping[int, str] | None = None,
    slow: Callable[[int], Mapping[int, float | None]] = lambda launch: {},
) -> tuple[list[Row], Recoveries]:
    """Launches, of which some are invalid for a reason, and their median."""
    rows = []
    for launch in range(1, count + 1):
        reason = (why or {}).get(launch, "")
        cells = {"launch": launch, "valid": not reason, "invalid_reasons": reason}
        rows.append(kept(run_dir, felt(slow(launch)), *PEAKS, name=f"{launch:02}-a", **cells))
    median = spikes(run_dir, *rows, launches=count)[-1]
    assert isinstance(median, Recoveries)
    return rows, median


def test_findings_are_each_spike_and_the_median(tmp_path: Path) -> None:
    row = kept(tmp_path, felt(dict.fromkeys(range(20, 29), 900.0)), *PEAKS)
    findings = spikes(tmp_path, row)
    first, other = recovered(findings)
    assert (first.name, first.value, first.unit) == ("recovery time, spike 1", 4.0, "s")
    assert first.disturbance == Disturbance("spike", 1, 2, 5.0)
    assert (first.calm.p95_ms, first.calm.limit_ms) == pytest.approx((200, 250), rel=0.001)
    assert first.recovery.worst_ms == pytest.approx(900, rel=0.001)
    assert (first.felt.errors, first.felt.answers) == (0, 15 * 400)
    assert other.value == 0.0
    median = findings[-1]
    assert (median.name, median.value, median.low) == ("recovery time, median", 2.0, None)
    # What is no calm for good is counted.
    row = kept(tmp_path / "again", felt(dict.fromkeys(range(28, 35), 900.0)), *PEAKS)
    first, _ = recovered(spikes(tmp_path / "again", row))
    assert (first.value, first.recovery.above, first.recovery.left) == (0.0, 7, 7)


def test_error_answers_are_no_recovery_however_quick(tmp_path: Path) -> None:
    """A breaker that opens in the spike, and refuses from then on within 2 ms."""
    quick, refused = (dict.fromkeys(range(21, 50), what) for what in (2.0, "503"))
    row = kept(tmp_path, felt(quick), *PEAKS, statuses=refused)
    first, *_ = recovered(spikes(tmp_path, row))
    assert (first.value, first.recovery.worst_ms) == (None, None)
    assert first.felt.errors == 14 * 400


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
    _, of = of_launches(tmp_path, count, why)
    assert (of.value, of.low, of.recovered, of.launches, of.failed) == median


def test_six_launches_have_an_interval(tmp_path: Path) -> None:
    def slow(launch: int) -> dict[int, float | None]:
        return {at: 900.0 for start in (25, 40) for at in range(start, start + launch)}

    _, median = of_launches(tmp_path, 6, slow=slow)
    assert (median.value, median.low, median.high, median.count) == (3.5, 1.0, 6.0, 12)


@pytest.mark.parametrize(
    ("cells", "peaks", "seconds", "code"),
    [
        (invalid("toxics-touched"), PEAKS, felt(), "toxics-touched"),
        ({}, (), felt(), "no-disturbance"),
        ({}, PEAKS, {at: second(200, 300) for at in range(10, 50)}, "no-calm"),
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


def of_faults(run_dir: Path, seconds: Mapping[int, Histogram], **changes: Any) -> list[Finding]:
    row = kept(run_dir, seconds, **{"script": MADE, **changes})
    return list(disturb.findings_of_faults(Outcome(faulty(servers=("a",)), [row], run_dir)))


def test_findings_are_each_fault_with_its_errors_and_the_median(tmp_path: Path) -> None:
    slow, refused = dict.fromkeys(range(20, 27), 500.0), dict.fromkeys(range(35, 40), "502")
    findings = of_faults(tmp_path, felt(slow), statuses=refused)
    first, down = recovered(findings)
    assert (first.name, first.value) == ("recovery time, fault 1", 2.0)
    assert first.disturbance == Disturbance("fault", 1, 2, 5.0, ("TYPE=latency LATENCY=300",))
    assert (first.felt.errors, first.felt.slowest_ms) == (0, pytest.approx(500, rel=0.01))
    assert (down.value, down.felt.errors, down.disturbance.changes) == (0.0, 2000, ("TYPE=down",))
    assert findings[-1].value == 1.0


def test_what_comes_back_slow_or_with_errors_is_not_recovered(tmp_path: Path) -> None:
    findings = of_faults(tmp_path, felt(), statuses=dict.fromkeys(range(35, 50), "502"))
    _, down = recovered(findings)
    assert (down.value, findings[-1].value) == (None, None)


def test_requests_without_an_answer_are_counted(tmp_path: Path) -> None:
    # Half of the connections are reset until 44: those left are as quick as ever.
    halved = {at: second(200, 200) for at in range(40, 44)}
    findings = of_faults(tmp_path, {**felt(), **halved}, timeouts=7, socket_errors=30)
    _, down = recovered(findings)
    assert (down.value, down.felt.timeouts, down.felt.lost) == (4.0, 7, 30)
